/** Chunks by way of the use cases of requests: see chunk-door.ts for what is promised. */
import { decodeFrame, type ItemError, isTerminal } from '@remuda/schemas';
import { itemError, RemudaError } from '../errors.js';
import type { FleetView } from '../fleet/fleet-view.js';
import type { RequestUseCaseService } from '../requests/use-cases.js';
import type { RequestStore } from '../store/request-store.js';
import type { StoredRecord } from '../store/stored-record.js';
import { decodeResult, encodeOrder } from './chunk-codec.js';
import type { ChunkDoor, ChunkEnd, ModelPace, NewChunk } from './chunk-door.js';

export interface ChunkDoorDeps {
  useCases: Pick<RequestUseCaseService, 'resolve' | 'submit' | 'waitFor' | 'cancel'>;
  fleet: Pick<FleetView, 'classFacts'>;
  store: Pick<RequestStore, 'read' | 'readOutcomes' | 'remove'>;
  /** How long the answers of a chunk wait to be fetched, in seconds. */
  keptS?: number;
}

export function createChunkDoor({ useCases, fleet, store, keptS = 24 * 3600 }: ChunkDoorDeps): ChunkDoor {
  return {
    resolve: (model, version) => useCases.resolve({ model, version, stickyKey: undefined }),
    signatureOf: ({ signature }) => signature,
    pace: ({ signature }) => paceOf(signature, fleet),
    async submit(chunk) {
      const { known } = await useCases.submit(submissionOf(chunk, keptS));
      return known ? 'known' : 'queued';
    },
    async wait(id, ms, signal) {
      try {
        const { status } = await useCases.waitFor(id, ms, signal);
        return isTerminal(status) ? await endOf(id, store) : null;
      } catch (error) {
        if (error instanceof RemudaError && error.code === 'request_not_found') return { kind: 'gone' };
        throw error;
      }
    },
    async cancel(id) {
      await useCases.cancel(id).catch((error: unknown) => {
        const over = error instanceof RemudaError && /^request_(terminal|not_found)$/.test(error.code);
        if (!over) throw error;
      });
    },
    async forget(id) {
      const [record] = await store.read([id]);
      if (record) await store.remove(record);
    },
  };
}

function submissionOf(
  { id, target, tenant, keyId, traceId, priority, order, payload }: NewChunk,
  keptS: number,
) {
  const { from, to } = order.slice ?? { from: 0, to: order.rows };
  return {
    model: target.signature.model,
    target,
    options: { version: target.signature.version, metadata: { priority, result_ttl_s: keptS } },
    items: [{ id: null, tensors: [], frame: encodeOrder(order, payload) }],
    hasItems: false,
    lane: 'chunks' as const,
    tenant,
    keyId,
    traceId,
    chunk: { id, rows: to - from },
  };
}

function paceOf(
  { model, version, batchable, max_batch_size }: ReturnType<ChunkDoor['signatureOf']>,
  fleet: ChunkDoorDeps['fleet'],
): ModelPace {
  const classes = fleet.classFacts(model, version).filter(({ ready }) => ready > 0);
  const devices = classes.reduce((sum, { ready }) => sum + ready, 0);
  const instances = classes.reduce((sum, one) => sum + one.instances, 0);
  const measured = classes.flatMap(({ secondsPerRow }) => (secondsPerRow ? [1 / secondsPerRow] : []));
  const rowsPerS = measured.reduce((sum, one) => sum + one, 0);
  return {
    // Of all of them together it is measured: an instance has its share of that.
    secondsPerRow: rowsPerS > 0 ? Math.max(1, instances) / rowsPerS : null,
    batchRows: batchable ? (max_batch_size ?? 1) : 1,
    instances,
    devices,
  };
}

async function endOf(id: string, store: ChunkDoorDeps['store']): Promise<ChunkEnd> {
  const [record] = await store.read([id]);
  if (!record) return { kind: 'gone' };
  const [frame] = await store.readOutcomes(record);
  const { begunAgain: again } = record;
  if (record.status !== 'succeeded') return { kind: 'failed', error: errorOf(record, frame ?? null), again };
  if (frame) return { kind: 'done', result: decodeResult(frame), bytes: frame.length, again };
  // The record alone would be found for ever, whoever sends the chunk again.
  await store.remove(record);
  return { kind: 'gone' };
}

function errorOf(record: StoredRecord, frame: Buffer | null): ItemError {
  const own = frame && (decodeFrame(frame).extras.error as ItemError | undefined);
  return own ?? record.error ?? itemError('internal', `the chunk ended as ${record.status} without a reason`);
}
