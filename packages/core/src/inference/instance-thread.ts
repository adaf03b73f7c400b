/**
 * One instance of a model: a worker thread that owns one harness, so that a native run blocks nothing but itself.
 * It does one thing at a time, as it is told; instance-pool.ts is the other side.
 */
import { parentPort, type TransferListItem } from 'node:worker_threads';
import type { RawTensor } from '@remuda/schemas';
import { ModelNotLoadedError, toItemError } from '../errors.js';
import type { InferenceHarness } from '../harness/harness.js';
import { observed } from '../harness/middleware.js';
import { resolveHarness } from '../harness/registry.js';
import type { FromInstance, ToInstance } from './instance-messages.js';

if (!parentPort) throw new Error('instance-thread runs as a worker thread');
const port = parentPort;

let harness: InferenceHarness | undefined;
let lastRunSeconds = 0;

// One after the other: a session that is released before a pending run has begun would fail that run.
let last: Promise<void> = Promise.resolve();
port.on('message', (message: ToInstance) => {
  last = last.then(() => handle(message));
});

async function handle(message: ToInstance): Promise<void> {
  if (message.type === 'load') await load(message);
  else if (message.type === 'warm') await warm();
  else if (message.type === 'run') await run(message);
  else await unload();
}

async function load({ source }: Extract<ToInstance, { type: 'load' }>): Promise<void> {
  try {
    const resolved = await resolveHarness(source);
    harness = observed(resolved.definition.create(), {
      ran: ({ seconds }) => {
        lastRunSeconds = seconds;
      },
    });
    const tensors = await harness.load(resolved.source);
    answer({ type: 'loaded', tensors, provider: harness.status().provider ?? 'unknown' });
  } catch (error) {
    await giveUp(error);
  }
}

async function warm(): Promise<void> {
  try {
    await harness?.warmUp();
    answer({ type: 'warmed' });
  } catch (error) {
    await giveUp(error);
  }
}

async function giveUp(error: unknown): Promise<void> {
  await harness?.unload();
  harness = undefined;
  answer({ type: 'load_failed', error: toItemError(error, 'model_load_failed') });
}

async function run(message: Extract<ToInstance, { type: 'run' }>): Promise<void> {
  const { rows, inputs, buffers, batchId, parameters } = message;
  lastRunSeconds = 0;
  try {
    if (!harness) throw new ModelNotLoadedError(batchId);
    const outputs = (await harness.run({ rows, inputs }, { batchId, parameters })).map(ownBuffer);
    const seconds = lastRunSeconds;
    answer({ type: 'ran', outputs, seconds, buffers }, [...buffers, ...largeBuffers(outputs)]);
  } catch (error) {
    const failure = toItemError(error, 'inference_failed');
    answer({ type: 'run_failed', error: failure, seconds: lastRunSeconds, buffers }, buffers);
  }
}

async function unload(): Promise<void> {
  await harness?.unload();
  harness = undefined;
  answer({ type: 'unloaded' });
}

function answer(message: FromInstance, transfer: readonly TransferListItem[] = []): void {
  port.postMessage(message, transfer);
}

/** From here on handing over memory is cheaper than copying it. */
const TRANSFER_FROM_BYTES = 16 * 1024;

/** A tensor whose buffer holds nothing else, so that sending it sends no more: a shared slab would travel whole. */
function ownBuffer(tensor: RawTensor): RawTensor {
  const { bytes } = tensor;
  return bytes.byteLength === bytes.buffer.byteLength ? tensor : { ...tensor, bytes: Uint8Array.from(bytes) };
}

function largeBuffers(outputs: readonly RawTensor[]): ArrayBuffer[] {
  const buffers = outputs.map(({ bytes }) => bytes.buffer as ArrayBuffer);
  // Two outputs may be one buffer; a transfer list must not name it twice.
  return [...new Set(buffers)].filter((buffer) => buffer.byteLength >= TRANSFER_FROM_BYTES);
}
