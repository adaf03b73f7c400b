/**
 * Entry of the process that a model lab starts: holds one model just as a runner does (harness, instance threads,
 * assembly, splitting), without a queue or a store, and runs what it is given.
 */
import '../inference/native-telemetry.js';
import { compatibilityKey } from '../batching/compatibility.js';
import { ModelNotLoadedError, RemudaError, toItemError } from '../errors.js';
import { BufferPool } from '../inference/buffer-pool.js';
import { InstanceThreads } from '../inference/instance-threads.js';
import { type ItemRun, newItemRun, runItems } from '../inference/item-run.js';
import { type LoadedModel, loadModel, setMaxBatchSize } from '../inference/loaded-model.js';
import type {
  FromLab,
  LabAnswer,
  LabItem,
  LabLoad,
  LabLoaded,
  LabMeasure,
  LabMeasured,
  ToLab,
} from './lab-messages.js';
import { quantileOf } from './quantiles.js';

const buffers = new BufferPool();
let model: LoadedModel | undefined;

process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
process.on('message', (message: ToLab) => {
  void handle(message).then(
    (result) => answer({ seq: message.seq, ok: true, result }),
    (error) => answer({ seq: message.seq, ok: false, error: toItemError(error, 'inference_failed') }),
  );
});

function answer(message: FromLab): void {
  process.send?.(message);
}

async function handle(message: ToLab): Promise<unknown> {
  if (message.type === 'load') return load(message);
  if (message.type === 'answer') return answers(message.items, message.together);
  if (message.type === 'group') return largestGroup(message.items);
  return measure(message);
}

async function load({ source, verify }: LabLoad): Promise<LabLoaded> {
  const onFatal = (): void => void process.kill(process.pid, 'SIGKILL');
  const loaded = await loadModel(source, { buffers, threads: new InstanceThreads(), verify, onFatal });
  model = loaded.model;
  const { signature, provider } = loaded.model;
  const { cases, maxAbsError } = loaded.golden;
  return { signature, provider, goldenCases: cases, goldenMaxAbsError: maxAbsError };
}

function required(): LoadedModel {
  if (!model) throw new ModelNotLoadedError('the model of the lab');
  return model;
}

async function answers(items: readonly LabItem[], together: boolean): Promise<LabAnswer[]> {
  const held = required();
  const runs = items.map(({ inputs, parameters }) => newItemRun(inputs, parameters));
  if (together) {
    setMaxBatchSize(
      held,
      items.reduce((rows, { inputs }) => rows + rowsOf(inputs, held), 0),
    );
    await runItems(runs, 'together', held, { buffers, send: () => {} });
  } else for (const run of runs) await runItems([run], 'alone', held, { buffers, send: () => {} });
  return runs.map(endOf);
}

function endOf(run: ItemRun): LabAnswer {
  const error = run.failed ?? run.runFailed?.error;
  if (error) return { ok: false, error };
  const { outputs, extra } = run.answer ?? { outputs: [], extra: undefined };
  return { ok: true, outputs, extra, batchRows: run.batchRows };
}

/** Indexes of the items that may share a run with the most others, as they are after preprocessing. */
async function largestGroup(items: readonly LabItem[]): Promise<number[]> {
  const { hooks, batch, source } = required();
  const groups = new Map<string, number[]>();
  for (const [index, { inputs, parameters }] of items.entries()) {
    const prepared = (await hooks.preprocess?.(inputs, parameters)) ?? { inputs };
    if ('error' in prepared) continue;
    const facts = { signature: batch, tensors: prepared.inputs, parameters, version: source.version };
    const key = compatibilityKey(facts);
    groups.set(key, [...(groups.get(key) ?? []), index]);
  }
  return [...groups.values()].reduce((best, group) => (group.length > best.length ? group : best), []);
}

/** As many batches on their way as keep every instance busy and one more ready, as in a runner. */
async function measure({ items, batch, warmUpS, measureS }: LabMeasure): Promise<LabMeasured> {
  const held = required();
  setMaxBatchSize(held, batch);
  let next = 0;
  let seconds: number[] = [];
  let rows = 0;
  const runOne = async (): Promise<void> => {
    const runs: ItemRun[] = [];
    for (let filled = 0; filled < batch; ) {
      const { inputs, parameters } = items[next++ % items.length] as LabItem;
      runs.push(newItemRun(inputs, parameters));
      filled += rowsOf(inputs, held);
    }
    await runItems(runs, 'measure', held, {
      buffers,
      send: (message) => message.type === 'run_ended' && seconds.push(message.seconds),
    });
    const failed = runs.map(endOf).find((end) => !end.ok);
    if (failed && !failed.ok) throw new RemudaError(failed.error.code, failed.error.message);
    for (const run of runs) rows += run.rows;
  };
  await busyFor(warmUpS, held.instances.size, runOne);
  [seconds, rows] = [[], 0];
  const elapsed = await busyFor(measureS, held.instances.size, runOne);
  return {
    rowsPerS: rows / elapsed,
    p50Ms: quantileOf(seconds, 0.5) * 1000,
    p95Ms: quantileOf(seconds, 0.95) * 1000,
    runs: seconds.length,
    rssBytes: process.memoryUsage.rss(),
  };
}

function rowsOf(inputs: LabItem['inputs'], { signature }: LoadedModel): number {
  const batched = signature.inputs.find((input) => input.batch_axis !== null);
  const tensor = inputs.find(({ name }) => name === batched?.name);
  return Math.max(1, tensor?.shape[batched?.batch_axis ?? 0] ?? 1);
}

/** Keeps the instances busy for so long, each lane for two runs at least. @returns the seconds that it took */
async function busyFor(lengthS: number, instances: number, work: () => Promise<void>): Promise<number> {
  const begun = performance.now();
  const lane = async (): Promise<void> => {
    for (let run = 0; run < 2 || performance.now() - begun < lengthS * 1000; run++) await work();
  };
  await Promise.all(Array.from({ length: instances + 1 }, lane));
  return (performance.now() - begun) / 1000;
}
