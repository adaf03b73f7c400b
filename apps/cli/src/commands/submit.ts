/** `remuda submit`: sends a request and shows its record, or with --wait its result. */
import { type ApiClient, isResult } from '../api/api-client.js';
import { EXIT } from '../exit-codes.js';
import { type ApiOptions, apiOf, type CommandContext, printJson } from './context.js';
import type { NamedValue } from './option-values.js';
import { recordLines } from './record-text.js';
import { requestBody } from './request-body.js';
import { showResult } from './result.js';

export interface SubmitOptions extends ApiOptions {
  image?: string[];
  input?: NamedValue[];
  file?: string;
  /** Number or alias. */
  version?: string;
  wait?: number;
  /** Address that is told of the end. */
  webhook?: string;
  priority?: number;
  timeoutMs?: number;
  /** Sent again with the same content it makes nothing new. */
  idempotencyKey?: string;
  startBy?: string;
  finishTimeout?: number;
  finishBy?: string;
}

/** @param source "-": the request stands on standard input */
export async function submit(
  model: string,
  source: '-' | undefined,
  options: SubmitOptions,
  { terminal, config, stdin }: CommandContext,
): Promise<number> {
  const api = apiOf(options, config);
  const sources = { ...options, images: options.image, inputs: options.input, file: source ?? options.file };
  const body = await requestBody(sources, {
    cwd: config.cwd,
    stdin,
    imageInput: () => imageInputOf(api, model),
  });
  const wait = options.wait ?? 0;
  const begun = Date.now();
  let answer = await api.submit(model, body, wait, options.idempotencyKey);
  // The API holds an answer for a minute at most.
  const left = Math.ceil(wait - (Date.now() - begun) / 1_000);
  if (!isResult(answer) && left > 0) {
    await api.record(answer.request_id, left);
    answer = await api.result(answer.request_id);
  }
  if (isResult(answer)) return showResult(answer, options, terminal);
  if (options.json) printJson(terminal, answer);
  else for (const line of recordLines(answer, terminal)) terminal.out(line);
  return wait > 0 ? EXIT.unfinished : EXIT.ok;
}

/** Where the signature is not known yet, the name that every image model of Remuda uses. */
async function imageInputOf(api: ApiClient, model: string): Promise<string> {
  const { signature } = await api.model(model);
  return (signature?.inputs.find((input) => input.kind === 'image') ?? signature?.inputs[0])?.name ?? 'image';
}
