/**
 * A door to nowhere: chunks lie in a hash of Redis and are answered by whoever waits for them, so that they outlive the
 * coordinator that sent them, as real ones do. y is twice x; what x is can be trouble.
 */
import type { ModelSignature } from '@remuda/schemas';
import { itemError, RemudaError } from '../../errors.js';
import type { Redis } from '../../store/redis.js';
import type { ChunkOrder, ChunkResult } from '../chunk.js';
import type { ChunkDoor, ChunkEnd } from '../chunk-door.js';
import { createRowReader } from '../input/row-reader.js';
import { columnRows, rowAsJson, textAt } from '../row-values.js';

export const DOUBLER = {
  ...{ model: 'doubler', version: '1', digest: 'd', batchable: true, max_batch_size: 4, kind: 'onnx' },
  inputs: [{ name: 'x', datatype: 'FP64', shape: ['N', 1], batch_axis: 0 }],
  outputs: [{ name: 'y', datatype: 'FP64', shape: ['N', 1], batch_axis: 0 }],
} as unknown as ModelSignature;

/** x of rows that fail, alone or with their runner. */
export const BAD = { row: -1, crash: -2 };

/** Fields of the hash that steer it. */
export const STEER = {
  hold: '!hold',
  gone: '!gone',
  unreadable: '!unreadable',
  mended: '!mended',
  again: '!again',
  other: '!other',
};

export function redisDoor(redis: Redis, key: string): ChunkDoor {
  const rows = createRowReader();
  const steered = async (field: string): Promise<boolean> => (await redis.hget(key, field)) !== null;
  return {
    async resolve(model, version) {
      if (model !== 'doubler') throw new RemudaError('model_not_found', `no model ${model}`);
      return { signature: { ...DOUBLER, version: version ?? '1' }, versionReason: 'test', notices: [] };
    },
    signatureOf: ({ signature }) => signature,
    pace: () => ({ secondsPerRow: null, batchRows: 4, instances: 1, devices: 1 }),
    async submit({ id, order, payload }) {
      if (await steered(STEER.gone)) throw new RemudaError('model_not_found', 'the model was taken out');
      const text = JSON.stringify({ order, payload: payload && Buffer.from(payload).toString('base64') });
      const first = await redis.hsetnx(key, id, text);
      if (first) await redis.hincrby(`${key}:sent`, String(order.firstRow + (order.slice?.from ?? 0)), 1);
      return first ? 'queued' : 'known';
    },
    async wait(id, ms, signal) {
      const text = await redis.hget(key, id);
      if (text === null) return { kind: 'gone' };
      if (ms === 0) return null;
      while (await steered(STEER.hold)) {
        if (signal?.aborted) return null;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      const { order, payload } = JSON.parse(text) as { order: ChunkOrder; payload: string | null };
      if (!payload && (await steered(STEER.unreadable)))
        return { kind: 'failed', error: itemError('source_unreadable', 'not mounted here'), again: 0 };
      return answer(order, payload === null ? null : Buffer.from(payload, 'base64'));
    },
    cancel: async (id) => void (await redis.hdel(key, id)),
    forget: async (id) => void (await redis.hdel(key, id)),
  };

  async function answer(order: ChunkOrder, payload: Uint8Array | null): Promise<ChunkEnd> {
    const { source, range, read, mapping, firstRow } = order;
    const block = await rows.read(
      { source, range, firstRow, rows: order.rows, read, columns: null },
      payload,
    );
    const mended = await steered(STEER.mended);
    const { from, to } = order.slice ?? { from: 0, to: order.rows };
    const xs = Array.from({ length: to - from }, (_, i) => Number(rowAsJson(block.columns, from + i).x));
    if (xs.includes(BAD.crash))
      return { kind: 'failed', error: itemError('runner_crashed', 'the runner died'), again: 0 };
    const bytes = new Uint8Array(
      new Float64Array(xs.map((x) => (x === BAD.row && !mended ? 0 : 2 * x))).buffer,
    );
    const id = block.columns.find(({ name }) => name === mapping.idColumn);
    const result: ChunkResult = {
      ...{ firstRow: firstRow + from, rows: to - from, device: 'cpu', workerId: 'w', seconds: 0.001 },
      ...((await steered(STEER.other)) && { digest: 'other' }),
      ids: id ? xs.map((_, i) => textAt(id, from + i)) : null,
      outputs: [{ name: 'y', datatype: 'FP64', shape: [1], bytes }],
      kept: mapping.keep.flatMap((name) => {
        const column = block.columns.find((one) => one.name === name);
        return column ? [columnRows(column, from, to)] : [];
      }),
      failures: xs.flatMap((x, index) =>
        x === BAD.row && !mended
          ? [
              {
                index,
                error: itemError('invalid_row', 'x is bad'),
                input: rowAsJson(block.columns, from + index),
              },
            ]
          : [],
      ),
    };
    return { kind: 'done', result, bytes: bytes.length, again: (await steered(STEER.again)) ? 1 : 0 };
  }
}
