/** Cutting: whatever the limits, every row is read exactly once, and a job that goes on cuts as it would have. */
import { readFile as readBytes, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CutLimits, OpenOptions, Piece } from '../bulk-input.js';
import { InputFolder, LARGE, piecesOf, readFile, rowsOf } from '../input.fixture.js';
import { openInput } from '../open-input.js';
import { zstdFrame } from '../zstd.fixture.js';

let folder: InputFolder;
beforeAll(async () => {
  folder = await InputFolder.make();
});
afterAll(() => folder.remove());

/** The same numbers each time. */
function randomness(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

interface Sample {
  text: string;
  /** Values of the column `v`. */
  values: string[];
}

function sampleJsonl(seed: number): Sample {
  const random = randomness(seed);
  const values = Array.from({ length: random(120) }, (_, i) => `${i} ${'é"\n'.repeat(random(30))}`);
  const newline = random(2) ? '\r\n' : '\n';
  const blank = (): string => (random(5) === 0 ? ['', '  ', '\t'][random(3)] + newline : '');
  let text = random(2) ? '\ufeff' : '';
  for (const v of values) text += blank() + JSON.stringify({ v, n: 1 }) + newline;
  if (values.length > 0 && random(2)) text = text.replace(/\r?\n$/, '');
  else text += blank();
  return { text, values };
}

function sampleCsv(seed: number): Sample {
  const random = randomness(seed);
  const newline = random(2) ? '\r\n' : '\n';
  const parts = ['a', ',', '\n', '\r\n', '""', ' x', 'é'];
  const values = Array.from(
    { length: random(120) },
    (_, i) => `${i}${Array.from({ length: random(8) }, () => parts[random(parts.length)]).join('')}`,
  );
  let text = `${random(2) ? '\ufeff' : ''}v,"n"${newline}`;
  for (const v of values)
    text += `${/[,\n"]/.test(v) || random(2) ? `"${v.replaceAll('"', '""')}"` : v},1${newline}`;
  if (random(2)) text = text.replace(/\r?\n$/, '');
  return { text, values };
}

const SAMPLES = { jsonl: sampleJsonl, csv: sampleCsv };
const limitsOf = (random: (below: number) => number): CutLimits => ({
  rows: 1 + random(40),
  multipleOf: 1 + random(9),
  bytes: 1 + random(2_000),
});

function checkPieces(pieces: readonly Piece[], limits: CutLimits, rows: number): void {
  let next = 0;
  for (const [i, piece] of pieces.entries()) {
    expect(piece.firstRow).toBe(next);
    expect(piece.rows).toBeLessThanOrEqual(Math.max(limits.rows, limits.multipleOf));
    if (i < pieces.length - 1) expect(piece.rows % limits.multipleOf).toBe(0);
    const { range } = piece;
    const length = range.kind === 'rows' ? 0 : (range.to as number) - (range.from as number);
    if (length > limits.bytes) expect(piece.rows).toBeLessThanOrEqual(limits.multipleOf);
    next += piece.rows;
    expect(piece.next.row).toBe(next);
  }
  expect(next).toBe(rows);
}

for (const format of ['jsonl', 'csv'] as const)
  for (const compression of ['none', 'gzip', 'zstd'] as const)
    describe(`${format}, ${compression}`, () => {
      it('gives all rows once, in order, in multiples, and the same pieces from any position on', async () => {
        for (let seed = 1; seed <= (compression === 'none' ? 20 : 4); seed += 1) {
          const { text, values } = SAMPLES[format](seed);
          const options = await written(`${format}-${seed}`, format, text, compression);
          const random = randomness(seed + 1_000);
          const limits = limitsOf(random);
          const input = await openInput(options);
          const pieces = await piecesOf(input, limits);
          checkPieces(pieces, limits, values.length);
          const { rows, failures } = await rowsOf(input, pieces);
          expect([...failures.values()]).toEqual([]);
          expect(rows.map(({ v }) => v).map(String)).toEqual(values);
          for (const at of [0, random(pieces.length + 1), pieces.length - 1]) {
            const position = JSON.parse(JSON.stringify(pieces[at - 1]?.next ?? { row: 0 }));
            expect(await piecesOf(input, limits, position)).toEqual(pieces.slice(Math.max(0, at)));
          }
          await input.close();
          // Another process, which begins in the middle.
          const again = await openInput(options);
          const middle = pieces.length >> 1;
          const from = pieces[middle - 1]?.next ?? { row: 0 };
          expect(await piecesOf(again, limits, from)).toEqual(pieces.slice(middle));
          await again.close();
        }
      });

      it('gives as payload what the runner would have read', async () => {
        const { text, values } = SAMPLES[format](7);
        const input = await openInput(await written('payload', format, text, compression));
        const pieces = await piecesOf(input, { rows: 16, multipleOf: 8, bytes: 1e6 });
        const sent = await Promise.all(
          pieces.map(async (piece) => {
            const payload = await input.payloadOf(piece);
            if (piece.payload) expect(payload).toEqual(piece.payload);
            return { ...piece, source: null, payload, range: { ...piece.range, kind: 'payload' as const } };
          }),
        ).catch((error) => Promise.reject(error));
        const { rows } = await rowsOf(input, sent as Piece[]);
        expect(rows.map(({ v }) => String(v))).toEqual(values);
        await input.close();
      });
    });

describe('what is larger than the windows it is read in', () => {
  const line = (i: number, letters: number): string => `{"i":${i},"s":"${'x'.repeat(letters)}"}\n`;

  it('is cut and read the same', async () => {
    const sizes = [10, 3_000_000, 20, 1_048_576 - 18, 5];
    const path = await folder.write('wide.jsonl', sizes.map((size, i) => line(i, size)).join(''));
    const { rows } = await readFile(
      path,
      { format: 'jsonl' },
      { limits: { rows: 2, multipleOf: 1, bytes: 100 } },
    );
    expect(rows.map(({ i, s }) => [i, (s as string).length])).toEqual(sizes.map((size, i) => [i, size]));
  });

  it('fails alone where it is longer than a row may be, and its neighbours know their lines', async () => {
    const path = await folder.write('long.jsonl', `{"i":0}\n${line(1, 33 * 1024 * 1024)}{"i":2}\n{"i":}\n`);
    for (const compression of ['none', 'gzip'] as const) {
      const packed = compression === 'none' ? path : await gzipped(path);
      const { rows, failures, raw } = await readFile(packed, { format: 'jsonl' }, { compression });
      expect(rows.map(({ i }) => i)).toEqual([0, null, 2, null]);
      expect(failures.get(1)?.message).toMatch(
        /^line 2 \(byte 8\) is 346\d+ bytes long, and at most 33554432/,
      );
      expect(failures.get(3)?.message).toMatch(/^line 4 \(byte 346\d+\) is not valid JSON/);
      expect(raw[1]).toBeNull();
    }
  });
});

describe('a file that is not what it was', () => {
  it('is not read on by the coordinator', async () => {
    const path = await folder.write('changing.jsonl', '{"a":1}\n'.repeat(150_000));
    const input = await openInput({ path, read: { format: 'jsonl' }, compression: 'none' });
    const piece = await input.cut({ row: 0 }, { rows: 10, multipleOf: 1, bytes: 100 });
    expect(piece?.rows).toBe(10);
    await writeFile(path, '{"a":2}\n'.repeat(150_000));
    await utimes(path, 1, 1);
    await expect(piecesOf(input)).rejects.toMatchObject({ code: 'invalid_file', message: /was written to/ });
    await input.close();
  });

  it('is not read by a worker that sees another one, or none', async () => {
    const path = await folder.write('seen.jsonl', '{"a":1}\n');
    const input = await openInput({ path, read: { format: 'jsonl' }, compression: 'none' });
    const pieces = await piecesOf(input);
    await input.close();
    await truncate(path, 4);
    await expect(rowsOf(input, pieces)).rejects.toMatchObject({ code: 'source_unreadable' });
    const elsewhere = pieces.map((piece) => ({
      ...piece,
      source: { path: `${path}.gone`, bytes: 8, mtimeMs: 0 },
    }));
    await expect(rowsOf(input, elsewhere)).rejects.toMatchObject({ code: 'source_unreadable' });
  });

  it('is not there: file_not_found', async () => {
    await expect(readFile(`${folder.path}/none.jsonl`, { format: 'jsonl' })).rejects.toMatchObject({
      code: 'file_not_found',
    });
  });

  it('is a folder: says so', async () => {
    await expect(readFile(folder.path, { format: 'jsonl' })).rejects.toThrow(
      /is a folder, where a file was expected/,
    );
  });
});

describe('compressed files that are damaged', () => {
  const text = Array.from({ length: 8_000 }, (_, i) => `{"i":${i},"r":"${(i * 7_919) % 10_007}"}\n`).join('');

  for (const compression of ['gzip', 'zstd'] as const) {
    it(`${compression}: a file that is cut off gives its readable rows, then says how many and where it ends`, async () => {
      const options = await written(`cut-${compression}`, 'jsonl', text, compression);
      const whole = (await stat(options.path)).size;
      await truncate(options.path, whole - 100);
      const found = await untilFault(options, 500);
      expect(found.rows).toBeGreaterThan(0);
      expect(found.rows).toBeLessThan(8_000);
      expect(found.error).toMatchObject({
        code: 'invalid_file',
        details: { byte: whole - 100, rows: found.rows },
      });
      expect(found.error.message).toMatch(
        new RegExp(
          `its ${compression} data is cut off at byte ${whole - 100} of .*: ${found.rows} rows before it`,
        ),
      );
      // From there on, and in smaller pieces: the same.
      expect((await untilFault(options, 77)).rows).toBe(found.rows);
    });

    it(`${compression}: data that is broken in the middle too`, async () => {
      const random = randomness(5);
      const noise = Array.from({ length: 20_000 }, () => `{"r":${random(2 ** 31)}${random(2 ** 31)}}\n`).join(
        '',
      );
      const options = await written(`broken-${compression}`, 'jsonl', noise, compression);
      const bytes = await readBytes(options.path);
      bytes.fill(0xff, bytes.length >> 1, (bytes.length >> 1) + 50);
      await writeFile(options.path, bytes);
      const found = await untilFault(options, 500);
      expect(found.error).toMatchObject({ code: 'invalid_file', details: { rows: found.rows } });
      expect(found.error.message).toMatch(new RegExp(`its ${compression} data is damaged`));
    });

    it(`${compression}: several members behind one another are one file`, async () => {
      const halves = [text.slice(0, 50_003), text.slice(50_003)];
      const paths = await Promise.all(
        halves.map((half, i) => written(`part-${i}`, 'jsonl', half, compression)),
      );
      const parts = await Promise.all(paths.map(({ path }) => readBytes(path)));
      const path = await folder.write(`members-${compression}`, Buffer.concat(parts));
      const { rows } = await readFile(path, { format: 'jsonl' }, { compression });
      expect(rows.length).toBe(8_000);
      expect(rows[7_999]?.i).toBe(7_999);
    });

    it(`${compression}: a file that is not packed says what it begins with`, async () => {
      const path = await folder.write(`plain-${compression}`, text);
      await expect(readFile(path, { format: 'jsonl' }, { compression })).rejects.toThrow(
        new RegExp(`is not packed with ${compression}: it begins with 7b 22`),
      );
    });
  }

  it('gzip: zeros behind the end are no data; anything else there is damage', async () => {
    const packed = gzipSync(text);
    for (const zeros of [1, 512, 50_000]) {
      const path = await folder.write('padded.gz', Buffer.concat([packed, Buffer.alloc(zeros)]));
      const { rows } = await readFile(path, { format: 'jsonl' }, { compression: 'gzip' });
      expect(rows.length).toBe(8_000);
    }
    const path = await folder.write('hidden.gz', Buffer.concat([packed, Buffer.alloc(512), packed]));
    await expect(readFile(path, { format: 'jsonl' }, { compression: 'gzip' })).rejects.toThrow(
      /its gzip data is damaged \(there is something else behind its end\)/,
    );
  });

  it('a plain reading of a packed, columnar or UTF-16 file says what it is', async () => {
    const cases: Array<[Uint8Array, RegExp]> = [
      [gzipSync(text), /packed with gzip: set the compression/],
      [Buffer.from('PAR1....'), /a Parquet file/],
      [Buffer.from('\ufeff{}', 'utf16le'), /UTF-16.*iconv/],
    ];
    for (const [bytes, message] of cases) {
      const path = await folder.write('mistaken', bytes);
      await expect(readFile(path, { format: 'jsonl' })).rejects.toThrow(message);
      await expect(readFile(path, { format: 'csv' })).rejects.toThrow(message);
    }
  });

  it('memory holds a part of a file that unpacks to much more', async () => {
    const path = await folder.write('bomb.gz', gzipSync(Buffer.from('{"a":1}\n'.repeat(500_000))));
    const input = await openInput({ path, read: { format: 'jsonl' }, compression: 'gzip' });
    let rows = 0;
    let largest = 0;
    for (let at = { row: 0 }; ; ) {
      const piece = await input.cut(at, { rows: 1_000, multipleOf: 10, bytes: 8_000 });
      if (!piece) break;
      rows += piece.rows;
      largest = Math.max(largest, piece.payload?.byteLength ?? 0);
      at = piece.next;
    }
    expect([rows, largest]).toEqual([500_000, 8_000]);
    expect(input.bytesAt({ row: rows, byte: 4_000_000 })).toBe(input.totalBytes);
    await input.close();
  });
});

async function untilFault(options: OpenOptions, rows: number): Promise<{ rows: number; error: Error }> {
  const input = await openInput(options);
  let at = { row: 0 };
  try {
    for (;;) {
      const piece = await input.cut(at, { ...LARGE, rows, multipleOf: Math.min(rows, 100) });
      if (!piece) throw new Error('came to an end');
      await rowsOf(input, [piece]);
      at = piece.next;
    }
  } catch (error) {
    return { rows: at.row, error: error as Error };
  } finally {
    await input.close();
  }
}

async function written(
  name: string,
  format: 'jsonl' | 'csv',
  text: string,
  compression: OpenOptions['compression'],
): Promise<OpenOptions> {
  const path = await folder.write(`${name}-${compression}`, text);
  if (compression === 'gzip') await writeFile(path, gzipSync(text));
  if (compression === 'zstd') await writeFile(path, await zstdFrame(Buffer.from(text)));
  return { path, read: { format }, compression };
}

async function gzipped(path: string): Promise<string> {
  return folder.write('packed.gz', gzipSync(await readBytes(path)));
}
