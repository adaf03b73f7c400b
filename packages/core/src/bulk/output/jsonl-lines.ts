/** Lines of JSON: one flat object a row, in the order of the layout; a row that failed has "error" in place of outputs. */
import type { ItemError } from '@remuda/schemas';
import type { ChunkResult } from '../chunk.js';
import { columnJson, type JsonCell, outputJson } from './json-values.js';
import type { OutputLayout } from './output-layout.js';
import { failedRows, outputRows } from './output-rows.js';
import { TextBuffer } from './text-buffer.js';
import type { TextFormat } from './text-output.js';

export function jsonlLines(layout: OutputLayout): TextFormat {
  return { header: '', lines: (result) => linesOf(result, layout) };
}

function linesOf(result: ChunkResult, layout: OutputLayout): Uint8Array {
  const failed = failedRows(result);
  const errors = new Map(result.failures.map(({ index, error }) => [index, error]));
  const cells = [...keptCells(result, layout), ...outputCells(result, layout, failed)];
  const rowKey = `{${JSON.stringify(layout.row)}:`;
  const idKey = layout.id === null ? null : keyOf(layout.id);
  const errorKey = keyOf(layout.error);
  const text = new TextBuffer();
  for (let i = 0; i < result.rows; i++) {
    let line = rowKey + String(result.rowNumbers?.[i] ?? result.firstRow + i);
    if (idKey !== null) line += idKey + JSON.stringify(result.ids?.[i] ?? null);
    for (const { key, cell } of cells) {
      const value = cell(i);
      if (value !== undefined) line += key + value;
    }
    const error = errors.get(i);
    if (error) line += errorKey + errorJson(error);
    text.add(`${line}}\n`);
  }
  return text.bytes();
}

function keyOf(name: string): string {
  return `,${JSON.stringify(name)}:`;
}

interface KeyedCell {
  key: string;
  cell: JsonCell;
}

function keptCells(result: ChunkResult, { kept }: OutputLayout): KeyedCell[] {
  return kept.map(({ name }) => {
    const column = result.kept.find((one) => one.name === name);
    return { key: keyOf(name), cell: column ? columnJson(column) : () => 'null' };
  });
}

function outputCells(result: ChunkResult, { outputs }: OutputLayout, failed: Uint8Array | null): KeyedCell[] {
  return outputs.flatMap((output) => {
    const rows = outputRows(result, output, failed);
    return rows ? [{ key: keyOf(output.column), cell: outputJson(rows, output.scalar) }] : [];
  });
}

function errorJson({ code, message }: ItemError): string {
  return JSON.stringify({ code, message });
}
