/** Scores the sample of a dry run where the whole of it would be scored: by an API, or here. It leaves nothing behind. */
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { newBulkJobId } from '@remuda/core/ids';
import type { BulkJob, BulkJobCreateInput, ModelSignature } from '@remuda/schemas';
import { CliError } from '../cli-error.js';
import { apiOf } from '../commands/context.js';
import { modelNamed } from '../commands/model-of-repository.js';
import { withProgress } from '../terminal/progress.js';
import { modelsFolderOf } from '../workspace.js';
import { ApiBulk } from './api-bulk.js';
import type { BulkControl } from './bulk-control.js';
import { endOf } from './follow-job.js';
import { LocalBulk } from './local-bulk.js';
import type { Sample } from './sample.js';
import type { Scoring } from './score-api.js';
import type { ScorePlan } from './score-plan.js';
import { fileUpload } from './upload-file.js';

export interface ServedModel {
  signature: ModelSignature;
  /** Of all devices that have it loaded. */
  instances: number;
  devices: number;
}

export interface SampleRunner {
  served(): Promise<ServedModel>;
  /** Column that images are sent in; null: they are read where they lie. */
  imageColumn(signature: ModelSignature): string | null;
  score(sample: Sample): Promise<BulkJob>;
  close(): Promise<void>;
}

export function openSampleRunner(scoring: Scoring, plan: ScorePlan, folder: string): Promise<SampleRunner> {
  return scoring.options.local
    ? localRunner(scoring, plan, folder)
    : Promise.resolve(apiRunner(scoring, plan));
}

function apiRunner({ options, context }: Scoring, plan: ScorePlan): SampleRunner {
  const client = apiOf(options, context.config);
  const api = new ApiBulk(client);
  return {
    async served() {
      const { signature, config, workers } = await client.model(plan.model);
      if (signature === null) throw new CliError(`No worker has told yet what ${plan.model} takes.`);
      return { signature, instances: workers * (config?.instances ?? 1), devices: workers };
    },
    imageColumn: imageInputOf,
    async score(sample) {
      const { filename, content } = fileUpload(sample.path, (await stat(sample.path)).size);
      const file = await api.upload(filename, content);
      const job = await untilEnded(api, await api.create(sampleJob(plan, sample, { file_id: file.id })));
      const written = [file.id, job.output_file_id, job.error_file_id].filter((id) => id !== null);
      await Promise.all(written.map((id) => api.deleteFile(id).catch(() => {})));
      return job;
    },
    close: async () => {},
  };
}

async function localRunner(
  { options, context }: Scoring,
  plan: ScorePlan,
  folder: string,
): Promise<SampleRunner> {
  const { terminal, config } = context;
  const modelsFolder = modelsFolderOf(config.cwd, options.models ?? config.modelsFolder);
  await modelNamed(modelsFolder, plan.model);
  const bulk = new LocalBulk({
    model: plan.model,
    modelsFolder,
    folder: join(folder, 'local'),
    workers: options.workers ?? 1,
    keyspace: config.keyspace,
    env: config.env,
    cwd: config.cwd,
    say: (line) => terminal.note(line),
  });
  await withProgress(terminal, 'starting', (say) => bulk.start(say)).catch(async (error: unknown) => {
    await bulk.stop();
    throw error;
  });
  return {
    served: () => bulk.served(plan.version),
    imageColumn: () => null,
    async score(sample) {
      const job = sampleJob(plan, sample, { uri: sample.path });
      const output = { ...job.output, uri: join(folder, 'sample.out.jsonl') };
      const ended = await untilEnded(
        bulk.control,
        await bulk.control.create({ ...job, output }, newBulkJobId()),
      );
      await rm(output.uri, { force: true });
      return ended;
    },
    close: () => bulk.stop(),
  };
}

function imageInputOf({ inputs }: ModelSignature): string {
  return inputs.find(({ kind }) => kind === 'image')?.name ?? 'image';
}

function sampleJob(
  { job }: ScorePlan,
  { format, map, idColumn }: Sample,
  source: { uri?: string; file_id?: string },
): BulkJobCreateInput {
  const { outputs, top_k, argmax } = job.output ?? {};
  const { model, version, parameters, priority } = job;
  return {
    model,
    input: { ...source, format },
    output: {
      format: 'jsonl',
      ...(outputs ? { outputs } : {}),
      ...(top_k ? { top_k } : {}),
      ...(argmax ? { argmax } : {}),
    },
    ...(version === undefined ? {} : { version }),
    ...(parameters ? { parameters } : {}),
    ...(priority === undefined ? {} : { priority }),
    ...(map ? { map } : {}),
    ...(idColumn === undefined ? {} : { id_column: idColumn }),
  };
}

const POLL_MS = 200;

async function untilEnded(control: Pick<BulkControl, 'get'>, first: BulkJob): Promise<BulkJob> {
  let job = first;
  while (endOf(job) === undefined) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    job = await control.get(job.id);
  }
  return job;
}
