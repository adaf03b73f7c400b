/** One request through the HTTP API, to its end: the API holds the answer, and is asked again where that was not enough. */
import { decodeTensor, type InferenceResult, type RawTensor } from '@remuda/schemas';
import { type ApiClient, isResult, type RequestBody } from '../api/api-client.js';
import { itemErrorText } from '../api/problem-text.js';
import { CliError } from '../cli-error.js';

/** Longest that a sample may take: a first run on a slow machine, with models still loading. */
const ANSWER_S = 120;

/** @throws CliError when it is refused, fails, or does not end */
export async function askModel(api: ApiClient, model: string, body: RequestBody): Promise<InferenceResult> {
  const first = await api.submit(model, body, ANSWER_S);
  const result = isResult(first) ? first : await later(api, first.request_id);
  if (result.status === 'succeeded') return result;
  throw new CliError(result.error ? itemErrorText(result.error) : result.status);
}

async function later(api: ApiClient, id: string): Promise<InferenceResult> {
  await api.record(id, ANSWER_S);
  const answer = await api.result(id);
  if (isResult(answer)) return answer;
  throw new CliError(`${id} is still ${answer.status} after ${ANSWER_S} s`);
}

/** @throws CliError when the result has no such output */
export function outputOf(result: InferenceResult, name: string): RawTensor {
  const tensor = result.outputs?.[name];
  if (tensor) return decodeTensor(name, tensor, ['outputs', name]);
  throw new CliError(
    `the result has no output "${name}"; it has ${Object.keys(result.outputs ?? {}).join(', ')}`,
  );
}

/** The only element of an output of FP32. */
export function firstFloat({ bytes }: RawTensor): number {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).readFloatLE(0);
}
