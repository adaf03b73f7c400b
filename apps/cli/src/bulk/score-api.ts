/**
 * `remuda score` against an API: the input goes up, the job is followed, its files come down to where they were asked
 * for. The job is the server's: whatever ends this process, it goes on, and --resume comes back to it.
 */
import { rm } from 'node:fs/promises';
import type { BulkInput, BulkJob } from '@remuda/schemas';
import { ApiClient, ProblemError } from '../api/api-client.js';
import { Interrupted, reasonOf, usageError } from '../cli-error.js';
import type { CommandContext } from '../commands/context.js';
import { EXIT } from '../exit-codes.js';
import { megabytes } from '../terminal/figures.js';
import { withProgress } from '../terminal/progress.js';
import type { StopReason, StopSignals } from '../up/stop-signals.js';
import { ApiBulk } from './api-bulk.js';
import { downloadFile } from './download-file.js';
import { errorsPathOf } from './errors-path.js';
import { followJob } from './follow-job.js';
import { imageLines } from './image-lines.js';
import type { ShownPlaces } from './job-text.js';
import { type OutputPlace, outputPlace } from './places.js';
import { errorsBeside, refuseExisting, type ScoreOptions, type ScorePlan, scorePlan } from './score-plan.js';
import { shellCommand } from './shell-words.js';
import { showEnd } from './show-end.js';
import { fileUpload, type Upload, uploadFile } from './upload-file.js';

export interface Scoring {
  options: ScoreOptions;
  context: CommandContext;
  signals: StopSignals;
}

/** Where the files of the job go; undefined: where the server has put them. */
interface Destination {
  output: OutputPlace | undefined;
  errors: OutputPlace | undefined;
}

/** Nobody knows of the file that was sent but the job; `retry-failed` still needs it for a while. */
const INPUT_KEPT_S = 30 * 24 * 3600;

export async function scoreByApi({ options, context, signals }: Scoring): Promise<number> {
  const calls = new AbortController();
  const client = new ApiClient(options.url ?? context.config.url, {
    key: options.key ?? context.config.apiKey,
    stop: calls.signal,
  });
  const run = new ApiScoring({ options, context, signals }, client, calls);
  return options.resume === undefined ? run.start() : run.resume(options.resume);
}

class ApiScoring {
  readonly #options: ScoreOptions;
  readonly #context: CommandContext;
  readonly #signals: StopSignals;
  readonly #client: ApiClient;
  readonly #api: ApiBulk;
  readonly #calls: AbortController;

  constructor({ options, context, signals }: Scoring, client: ApiClient, calls: AbortController) {
    this.#options = options;
    this.#context = context;
    this.#signals = signals;
    this.#client = client;
    this.#api = new ApiBulk(client);
    this.#calls = calls;
  }

  async start(): Promise<number> {
    const plan = scorePlan(this.#options, this.#context.config.cwd);
    const sent = await this.#unlessAsked(() => this.#create(plan));
    if ('reason' in sent) {
      this.#context.terminal.note('Interrupted before the job was there: nothing runs.');
      return sent.reason.exitCode;
    }
    const job = sent.value;
    const { detach, json } = this.#options;
    if (detach) return showEnd(this.#detached(job), json === true, this.#context.terminal);
    return this.#followed(job, plan);
  }

  async resume(id: string): Promise<number> {
    const { out, errors, overwrite } = this.#options;
    const { cwd } = this.#context.config;
    const seen = await this.#api.get(id);
    const output = out === undefined ? undefined : outputPlace(out, cwd);
    if (output === undefined && seen.output.uri === null)
      throw usageError(`--out is missing: where the output of ${id} goes.`);
    const destination = { output, errors: errors === undefined ? undefined : outputPlace(errors, cwd) };
    refuseExisting([output, destination.errors ?? errorsBeside(output)], overwrite === true);
    const job = await this.#goingOn(seen);
    return this.#followed(job, destination);
  }

  async #goingOn(job: BulkJob): Promise<BulkJob> {
    return job.status === 'paused' || job.status === 'failed' ? this.#api.act(job.id, 'resume') : job;
  }

  async #create(plan: ScorePlan): Promise<BulkJob> {
    await this.#modelIsThere(plan.model);
    const source = await this.#source(plan);
    const { uri, errorsUri } = remoteOutput(plan);
    return this.#api.create(
      {
        ...plan.job,
        ...source.job,
        input: { ...plan.job.input, ...source.input },
        output: {
          ...plan.job.output,
          ...(uri === undefined ? {} : { uri }),
          ...(errorsUri === undefined ? {} : { errors_uri: errorsUri }),
        },
      },
      this.#options.idempotencyKey,
    );
  }

  /** Before the file is sent; who may not look at models may still send. */
  async #modelIsThere(model: string): Promise<void> {
    await this.#client.model(model).catch((error: unknown) => {
      if (!(error instanceof ProblemError) || error.status !== 403) throw error;
    });
  }

  async #source({ input, model, job }: ScorePlan): Promise<Source> {
    if (input.kind === 'remote') return { input: { uri: input.uri } };
    if (input.kind === 'images') {
      const { column, lines } = await imageLines(input.path, () => this.#imageInputOf(model));
      const file = await this.#upload({ filename: 'images.jsonl', content: lines, bytes: undefined });
      return {
        input: { file_id: file, format: 'jsonl' },
        job: { map: { [column]: column }, id_column: job.id_column ?? 'custom_id' },
      };
    }
    if (input.kind === 'file')
      return { input: { file_id: await this.#upload(fileUpload(input.path, input.bytes)) } };
    const { stdin } = this.#context;
    const filename = `stdin.${job.input.format}`;
    return { input: { file_id: await this.#upload({ filename, content: stdin, bytes: undefined }) } };
  }

  async #upload(upload: Upload): Promise<string> {
    return (await uploadFile(this.#api, upload, this.#context.terminal, INPUT_KEPT_S)).id;
  }

  async #imageInputOf(model: string): Promise<string> {
    const { signature } = await this.#client.model(model);
    return signature?.inputs.find(({ kind }) => kind === 'image')?.name ?? 'image';
  }

  async #followed(job: BulkJob, destination: Destination): Promise<number> {
    const { terminal } = this.#context;
    terminal.note(`${job.id}${job.model === null ? '' : ` scores with ${job.model}`}`);
    const followed = await followJob(job, { control: this.#api, terminal, asked: this.#signals.first });
    if (followed.end === 'asked') return this.#pause(followed.job);
    if (followed.end === 'paused') return this.#end(followed.job, {}, this.#resumeCommand(job.id));
    const delivered = await this.#unlessAsked(() => this.#deliver(followed.job, destination));
    if ('value' in delivered) return this.#end(followed.job, delivered.value);
    const resume = this.#resumeCommand(job.id);
    terminal.note('Interrupted while the files came down; what is here is kept.');
    return this.#end(followed.job, {}, resume, delivered.reason.exitCode);
  }

  /** Asked for once: the job pauses. Asked for twice: it is left alone. */
  async #pause(seen: BulkJob): Promise<number> {
    const { terminal } = this.#context;
    const reason = await this.#signals.first;
    const resume = this.#resumeCommand(seen.id);
    terminal.note('Pausing; once more detaches at once, and the job goes on.');
    const detached = this.#signals.second.then(() => undefined);
    const asking = this.#api.act(seen.id, 'pause').catch((error: unknown) => {
      // Detached from, or it has ended by itself; either way one can come back to it.
      if (!this.#calls.signal.aborted) terminal.note(`It is not paused: ${reasonOf(error)}`);
    });
    const asked = await Promise.race([asking, detached]);
    const last = asked ? await this.#untilPaused(asked) : seen;
    this.#calls.abort();
    return this.#end(last, {}, resume, reason.exitCode);
  }

  /** What is under way is finished first; a second signal does not wait for it. */
  async #untilPaused(asked: BulkJob): Promise<BulkJob> {
    const { terminal } = this.#context;
    try {
      return (await followJob(asked, { control: this.#api, terminal, asked: this.#signals.second })).job;
    } catch {
      return asked;
    }
  }

  #end(job: BulkJob, places: ShownPlaces, resume?: string, code?: number): number {
    const end = { job, places, resume, ...(code === undefined ? {} : { code }) };
    return showEnd(end, this.#options.json === true, this.#context.terminal);
  }

  #detached(job: BulkJob) {
    return { job, places: {}, resume: this.#resumeCommand(job.id), code: EXIT.ok };
  }

  async #deliver(job: BulkJob, { output, errors }: Destination): Promise<ShownPlaces> {
    const isGiven = job.status === 'completed' || job.status === 'cancelled';
    if (!isGiven || output?.kind !== 'file') return {};
    if (job.output_file_id !== null) await this.#download(job.output_file_id, output.path);
    const errorsPath = errors?.kind === 'file' ? errors.path : errorsPathOf(output.path);
    const hasErrors = job.error_file_id !== null && job.progress.rows_failed > 0;
    if (hasErrors) await this.#download(job.error_file_id as string, errorsPath);
    // Those of an earlier run would be taken for those of this one.
    else if (this.#options.overwrite) await rm(errorsPath, { force: true });
    return {
      output: job.output_file_id === null ? undefined : output.path,
      errors: hasErrors ? errorsPath : undefined,
    };
  }

  async #download(id: string, path: string): Promise<void> {
    const file = await this.#api.file(id);
    const { overwrite = false } = this.#options;
    await withProgress(this.#context.terminal, `fetching ${path}`, (say) =>
      downloadFile(this.#api, file, path, {
        overwrite,
        onBytes: (bytes) => say(`${megabytes(bytes)} of ${megabytes(file.bytes)}`),
        stop: this.#calls.signal,
      }),
    );
  }

  /** Ends the calls that are under way where the person asks for the end before they are done. */
  async #unlessAsked<T>(work: () => Promise<T>): Promise<{ value: T } | { reason: StopReason }> {
    let reason: StopReason | undefined;
    let over = false;
    void this.#signals.first.then((asked) => {
      if (over) return;
      reason = asked;
      this.#calls.abort(new Interrupted(asked.name));
    });
    try {
      return { value: await work() };
    } catch (error) {
      if (reason) return { reason };
      throw error;
    } finally {
      over = true;
    }
  }

  #resumeCommand(id: string): string {
    const { out, errors, url, overwrite } = this.#options;
    return shellCommand([
      ...['remuda', 'score', '--resume', id],
      ...(out === undefined ? [] : ['--out', out]),
      ...(errors === undefined ? [] : ['--errors', errors]),
      ...(url === undefined ? [] : ['--url', url]),
      overwrite && '--overwrite',
    ]);
  }
}

interface Source {
  input: Pick<BulkInput, 'uri' | 'file_id' | 'format'>;
  /** Where the file that is sent is another than the one that was named. */
  job?: Pick<ScorePlan['job'], 'map' | 'id_column'>;
}

function remoteOutput({ output, errors }: Destination): { uri?: string; errorsUri?: string } {
  return {
    ...(output?.kind === 'remote' ? { uri: output.uri } : {}),
    ...(errors?.kind === 'remote' ? { errorsUri: errors.uri } : {}),
  };
}
