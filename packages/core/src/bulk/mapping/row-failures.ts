/** The rows of a block that cannot be run, each with the first thing that was found wrong with it. */
import type { ErrorCode, ItemError } from '@remuda/schemas';
import { itemError } from '../../errors.js';
import type { RowBlock } from '../columns.js';

export class RowFailures {
  readonly found = new Map<number, ItemError>();
  /** 1: the row is out, here or since it could not be read. */
  readonly out: Uint8Array;
  readonly #numberOf: (row: number) => number | null;

  /** @param firstRow number of the block's first row in the input, where it is known */
  constructor({ rows, failures, rowNumbers }: RowBlock, firstRow: number | undefined) {
    this.out = new Uint8Array(rows);
    for (const row of failures.keys()) this.out[row] = 1;
    this.#numberOf = (row) => rowNumbers?.[row] ?? (firstRow === undefined ? null : firstRow + row);
  }

  /** @param where a column, or a place in a request */
  add(row: number, where: string, expected: string, received: string): void {
    const at = where === '' ? '' : `column "${where}": `;
    const details = where === '' ? {} : { column: where };
    this.fail(row, 'invalid_row', `${at}expected ${expected}, received ${received}`, details);
  }

  fail(row: number, code: ErrorCode, message: string, details: Record<string, unknown> = {}): void {
    if (this.out[row]) return;
    this.out[row] = 1;
    const number = this.#numberOf(row);
    const named = number === null ? message : `row ${number}: ${message}`;
    this.found.set(row, itemError(code, named, number === null ? details : { row: number, ...details }));
  }
}
