/** What a file holds depends on its rows alone: not on the order in which chunks came, nor on how rows were cut into them. */
import { gunzipSync } from 'node:zlib';
import { BULK_OUTPUT_FORMATS } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import type { ChunkResult } from '../chunk.js';
import { createEncoder, type EncoderOptions } from './output-encoder.js';
import { failure, joined, output, resultOf } from './results.fixture.js';

/** Deterministic: the same run finds the same fault again. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const ROWS = 400;
const fails = (row: number): boolean => row % 17 === 3 || (row > 100 && row < 140);

/** Rows [from, to) as a model answers them: what a row gets depends on its number alone. */
function chunk(from: number, to: number): ChunkResult {
  const rows = to - from;
  const numbers = Array.from({ length: rows }, (_, i) => from + i);
  const shapes = numbers.map((row) => (fails(row) ? null : [row % 4]));
  const alike = rows === 1 && shapes[0] !== null;
  const ragged = numbers.flatMap((row) =>
    fails(row) ? [] : Array.from({ length: row % 4 }, (_, i) => row + i),
  );
  const failures = numbers.filter(fails).map((row) => failure(row - from));
  for (const one of failures) one.error.message = `row ${from + one.index}`;
  return resultOf(rows, {
    firstRow: from,
    ids: numbers.map(String),
    kept: [{ name: 'k', type: 'json', values: numbers.map((row) => (row % 5 === 0 ? null : row / 2)) }],
    outputs:
      failures.length === rows
        ? []
        : [
            output(
              'pair',
              'FP32',
              [2],
              numbers.flatMap((row) => (fails(row) ? [0, 0] : [row, -row])),
            ),
            alike
              ? output('ragged', 'INT32', shapes[0] as number[], ragged)
              : output('ragged', 'INT32', null, ragged, shapes),
          ],
    failures,
  });
}

function cut(next: () => number): ChunkResult[] {
  const chunks: ChunkResult[] = [];
  for (let from = 0; from < ROWS; ) {
    const to = Math.min(ROWS, from + 1 + Math.floor(next() * 60));
    chunks.push(chunk(from, to));
    from = to;
  }
  return chunks;
}

function shuffled<T>(items: readonly T[], next: () => number): T[] {
  return items
    .map((item) => ({ item, place: next() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}

const OPTIONS: Omit<EncoderOptions, 'format' | 'compression'> = {
  ids: true,
  outputs: [
    { name: 'pair', datatype: 'FP32', rowShape: [2] },
    { name: 'ragged', datatype: 'INT32', rowShape: [null] },
  ],
  keep: [{ name: 'k', type: null }],
};

describe.each(BULK_OUTPUT_FORMATS)('an output of %s', (format) => {
  it('is the same bytes in whatever order chunks come and however rows are cut', async () => {
    const options = { ...OPTIONS, format, compression: 'none' } as const;
    const whole = await joined(await createEncoder(options), [chunk(0, ROWS)]);
    for (let seed = 1; seed <= 8; seed++) {
      const next = random(seed);
      const written = await joined(await createEncoder(options), shuffled(cut(next), next));
      expect(written.equals(whole)).toBe(true);
    }
  });
});

it('compressed, an output is the same bytes in whatever order chunks come, and the same text however rows are cut', async () => {
  const options = { ...OPTIONS, format: 'csv', compression: 'gzip' } as const;
  const chunks = cut(random(1));
  const first = await joined(await createEncoder(options), chunks);
  const second = await joined(await createEncoder(options), shuffled(chunks, random(2)));
  expect(second.equals(first)).toBe(true);
  const other = await joined(await createEncoder(options), cut(random(3)));
  expect(gunzipSync(other).equals(gunzipSync(first))).toBe(true);
});
