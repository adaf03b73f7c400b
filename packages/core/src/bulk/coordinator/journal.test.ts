import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { joinErrors, joinOutput, wholeFile } from './joining.js';
import { type JournalEntry, journalLine, readJournal, type Settled } from './journal-entries.js';
import { Ledger } from './ledger.js';
import { WorkFolder } from './work-folder.js';
import { WorkLog } from './work-log.js';

const settled: Settled = {
  ...{ model: 'm', version: '1', batchRows: 4, path: '/in', bytes: 1, mtimeMs: 1, compression: 'none' },
  ...{ read: { format: 'jsonl' }, mapping: { inputs: [], keep: [], idColumn: null } },
  ...{ totalRows: null, totalBytes: null },
  answers: { format: 'jsonl', compression: 'none', argmax: false },
};

let path: string;
let folder: WorkFolder;
beforeEach(async () => {
  path = await mkdtemp(join(tmpdir(), 'remuda-journal-'));
  folder = new WorkFolder(join(path, 'work'));
});
afterEach(() => rm(path, { recursive: true, force: true }));

async function life(epoch: number): Promise<WorkLog> {
  return WorkLog.begin({ folder, found: await folder.read(), job: 'batch_a', epoch, now: 0 });
}

function cut(firstRow: number, rows: number): JournalEntry {
  const [at, next] = [{ row: firstRow }, { row: firstRow + rows }];
  const range = { kind: 'bytes' as const, from: firstRow * 10, to: (firstRow + rows) * 10 };
  return { k: 'cut', firstRow, rows, at, next, range, source: null, bytes: rows * 10 };
}

/** A line for each row. */
function answers(firstRow: number, rows: number, failed = 0, mark = '') {
  const lines = Array.from({ length: rows }, (_, i) => `${firstRow + i}${mark}\n`).join('');
  const errors = failed > 0 ? Buffer.from(`row ${firstRow}${mark}\n`) : null;
  const facts = { firstRow, rows, failed, worker: 'w', device: 'cpu', seconds: 1 };
  return { ...facts, data: Buffer.from(lines), errors, meta: { of: firstRow } };
}

const LINES = {
  head: null,
  encode: () => Promise.reject(new Error('not here')),
  async join(
    parts: AsyncIterable<{ read(): Promise<Uint8Array> }>,
    sink: { write(b: Uint8Array): Promise<void> },
  ) {
    for await (const part of parts) await sink.write(await part.read());
  },
};

async function joined(order: 'rows' | 'done' = 'rows'): Promise<string> {
  const { ledger } = await folder.read();
  const pieces: Uint8Array[] = [];
  const sink = { write: async (bytes: Uint8Array) => void pieces.push(Buffer.from(bytes)) };
  await joinOutput({ folder, parts: ledger.parts(order), goOn: () => undefined }, LINES as never, sink);
  return Buffer.concat(pieces).toString();
}

async function joinedErrors(): Promise<string> {
  const { ledger } = await folder.read();
  const pieces: Uint8Array[] = [];
  const sink = { write: async (bytes: Uint8Array) => void pieces.push(Buffer.from(bytes)) };
  await joinErrors({ folder, parts: ledger.parts(), goOn: () => undefined }, sink);
  return Buffer.concat(pieces).toString();
}

const rowsText = (rows: number): string => Array.from({ length: rows }, (_, i) => `${i}\n`).join('');

it('of pieces only those are kept whose rows may run yet, also when they are read again', async () => {
  const log = await life(1);
  await log.commit({ k: 'settled', settled });
  for (let row = 0; row < 80; row += 8) await log.write(cut(row, 8));
  for (let row = 72; row >= 16; row -= 8) await log.commit(answers(row, 8, row === 40 ? 1 : 0));
  const rowsOf = (ledger: Ledger): number[] => ledger.pieces.map(({ firstRow }) => firstRow);
  expect(rowsOf(log.ledger)).toEqual([0, 8, 40]);
  await log.commit({ k: 'retry', round: 1 });
  expect(log.ledger.pieceOf(40).range).toMatchObject({ from: 400, to: 480 });
  await log.commit(answers(40, 8));
  await log.close();
  expect(rowsOf((await folder.read()).ledger)).toEqual([0, 8]);
});

describe('the journal of a bulk job', () => {
  it('knows after a restart what is done, what is under way and where the input goes on', async () => {
    const log = await life(1);
    await log.commit({ k: 'settled', settled });
    await log.write(cut(0, 8));
    await log.write(cut(8, 8));
    await log.commit(answers(0, 8, 1));
    await log.close();
    const { ledger, job } = await folder.read();
    expect(job).toBe('batch_a');
    expect(ledger.settled).toEqual(settled);
    expect([ledger.rowsDone, ledger.rowsFailed, ledger.next.row]).toEqual([8, 1, 16]);
    expect(ledger.tasks()).toEqual([{ firstRow: 8, rows: 8 }]);
    expect(await joinedErrors()).toBe('row 0\n');
  });

  it('gives parts in the order of rows, or in that in which they were done', async () => {
    const log = await life(1);
    await log.commit({ k: 'settled', settled });
    for (const row of [0, 4, 8]) await log.write(cut(row, 4));
    for (const row of [8, 0, 4]) await log.commit(answers(row, 4));
    await log.close();
    expect(await joined()).toBe(rowsText(12));
    expect(await joined('done')).toBe('8\n9\n10\n11\n0\n1\n2\n3\n4\n5\n6\n7\n');
  });

  it('cut off at any byte, it is a consistent state from which the whole output comes', async () => {
    const log = await life(1);
    await log.commit({ k: 'settled', settled });
    for (const row of [0, 4, 8]) await log.write(cut(row, 4));
    await log.commit(answers(4, 4));
    await log.commit({ k: 'split', firstRow: 0, rows: 4 });
    await log.commit(answers(2, 2));
    await log.commit(answers(0, 2, 1));
    await log.commit(answers(8, 4));
    await log.commit({ k: 'end', rows: 12 });
    await log.close();
    const file = folder.file('journal', 1);
    const whole = await readFile(file);
    for (let length = 0; length <= whole.length; length++) {
      const ledger = new Ledger();
      for (const { entry, at } of readJournal(whole.subarray(0, length))) ledger.apply(entry, 1, at);
      const done = ledger.parts().reduce((sum, { rows }) => sum + rows, 0);
      const open = ledger.tasks().reduce((sum, { rows }) => sum + rows, 0);
      // Each row that was cut is done or to be done, once.
      expect(done + open).toBe(ledger.next.row);
      expect(ledger.rowsDone).toBe(done);
      const spans = [...ledger.parts(), ...ledger.tasks()].sort((a, b) => a.firstRow - b.firstRow);
      let row = 0;
      for (const span of spans) {
        expect(span.firstRow).toBe(row);
        row += span.rows;
      }
    }
    await writeFile(file, whole.subarray(0, whole.length / 2));
    const next = await life(2);
    if (!next.ledger.settled) await next.commit({ k: 'settled', settled });
    for (const { firstRow, rows } of next.ledger.tasks()) await next.commit(answers(firstRow, rows));
    for (let row = next.ledger.next.row; row < 12; row += 4) {
      await next.write(cut(row, 4));
      await next.commit(answers(row, 4));
    }
    await next.close();
    expect(await joined()).toBe(rowsText(12));
  });

  it('a damaged line ends it, whatever follows', () => {
    const lines = [cut(0, 4), cut(4, 4), cut(8, 4)].map(journalLine);
    const middle = lines[1] as Buffer;
    middle[20] = (middle[20] as number) ^ 1;
    expect([...readJournal(Buffer.concat(lines))].map(({ entry }) => entry)).toEqual([cut(0, 4)]);
  });

  it('does not count a part whose bytes the disk has lost', async () => {
    const log = await life(1);
    await log.commit({ k: 'settled', settled });
    await log.write(cut(0, 4));
    await log.write(cut(4, 4));
    await log.commit(answers(0, 4));
    await log.commit(answers(4, 4));
    await log.close();
    const data = await readFile(folder.file('data', 1));
    await writeFile(folder.file('data', 1), data.subarray(0, data.length - 1));
    const { ledger } = await folder.read();
    expect(ledger.tasks()).toEqual([{ firstRow: 4, rows: 4 }]);
  });

  it('counts nothing that a life writes after the next one has begun', async () => {
    const old = await life(1);
    await old.commit({ k: 'settled', settled });
    await old.write(cut(0, 4));
    await old.write(cut(4, 4));
    await old.commit(answers(0, 4));
    const next = await life(2);
    await old.commit(answers(4, 4, 0, ' of a ghost'));
    await next.commit(answers(4, 4));
    await old.close();
    await next.close();
    expect(await joined()).toBe(rowsText(8));
  });

  it('a life that died before its first line was whole is passed over', async () => {
    const log = await life(1);
    await log.commit({ k: 'settled', settled });
    await log.write(cut(0, 4));
    await log.commit(answers(0, 4));
    await log.close();
    await writeFile(folder.file('journal', 2), 'deadbeef {"k":"li');
    const found = await folder.read();
    expect(found.epoch).toBe(2);
    expect(found.ledger.rowsDone).toBe(4);
    const next = await life(3);
    await next.close();
    expect(await joined()).toBe(rowsText(4));
  });

  it('keeps an answer of a row that runs anew until all rows of its part have new ones', async () => {
    const log = await life(1);
    await log.commit({ k: 'settled', settled });
    await log.write(cut(0, 4));
    await log.write(cut(4, 4));
    await log.commit(answers(0, 4));
    await log.commit(answers(4, 4, 1));
    await log.commit({ k: 'retry', round: 1 });
    expect([log.ledger.rowsDone, log.ledger.rowsFailed]).toEqual([4, 0]);
    await log.commit({ k: 'split', firstRow: 4, rows: 4 });
    await log.commit(answers(4, 2, 0, ' anew'));
    await log.close();
    expect(await joined()).toBe(rowsText(8));
    const next = await life(2);
    await next.commit(answers(6, 2, 0, ' anew'));
    await next.close();
    expect(await joined()).toBe(`${rowsText(4)}4 anew\n5 anew\n6 anew\n7 anew\n`);
    expect(await joinedErrors()).toBe('');
  });

  it('is the output as it lies where parts came in order, in one life and behind its head', async () => {
    const head = Buffer.from('head\n');
    const log = await life(1);
    await log.writeHead(head);
    await log.commit({ k: 'settled', settled });
    for (const row of [0, 4, 8]) await log.write(cut(row, 4));
    await log.commit(answers(0, 4));
    await log.commit(answers(8, 4));
    await log.commit(answers(4, 4));
    await log.close();
    const { ledger } = await folder.read();
    expect(await wholeFile({ folder, parts: ledger.parts('done') }, { head })).toBe(1);
    expect(await readFile(folder.file('data', 1), 'utf8')).toBe(`head\n${await joined('done')}`);
    expect(await wholeFile({ folder, parts: ledger.parts('rows') }, { head })).toBeNull();
    expect(await wholeFile({ folder, parts: ledger.parts('done') }, { head: null })).toBeNull();
    // A tail that the journal does not know.
    await appendFile(folder.file('data', 1), '8\n');
    expect(await wholeFile({ folder, parts: ledger.parts('done') }, { head })).toBeNull();
  });

  it('takes nothing more once a write has failed', async () => {
    const log = await life(1);
    await log.close();
    await expect(log.commit({ k: 'settled', settled })).rejects.toThrow('closed');
  });
});
