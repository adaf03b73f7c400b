/**
 * Lines of the OpenAI Batch API: answers in the file of outputs, rows that failed in the file of errors alone. Ids are made
 * from the job and the row, so that a line written again is the same line.
 */
import { createHash } from 'node:crypto';
import { ERROR_CATALOGUE, type ItemError } from '@remuda/schemas';
import type { ChunkResult } from '../chunk.js';
import { elementJson, flatJson } from './json-values.js';
import type { OutputLayout } from './output-layout.js';
import { failedRows, type OutputRows, outputRows } from './output-rows.js';
import { TextBuffer } from './text-buffer.js';
import type { TextFormat } from './text-output.js';

export interface OpenAiJob {
  /** Its id. */
  job: string;
  model: string;
  version: string;
}

export function openAiLines(layout: OutputLayout, job: OpenAiJob): TextFormat {
  return { header: '', lines: (result) => answersOf(result, layout, job) };
}

export function openAiErrorLines(job: OpenAiJob): TextFormat {
  return { header: '', lines: (result) => errorsOf(result, job) };
}

function answersOf(result: ChunkResult, layout: OutputLayout, job: OpenAiJob): Uint8Array {
  const failed = failedRows(result);
  const outputs = layout.outputs.flatMap((output) => {
    const rows = outputRows(result, output, failed);
    return rows ? [{ output, rows, element: elementJson(rows) }] : [];
  });
  const text = new TextBuffer();
  for (let i = 0; i < result.rows; i++) {
    if (failed?.[i] === 1) continue;
    const tensors = outputs.map(
      ({ output: { column, datatype }, rows }) =>
        `${JSON.stringify(column)}:${tensorJson(datatype, rows, i)}`,
    );
    const { model, version } = job;
    const head = JSON.stringify({ model, version }).slice(0, -1);
    const body = `${head},"outputs":{${tensors.join(',')}}}`;
    const { id, requestId, customId } = identity(result, job, i);
    text.add(
      `{"id":"${id}","custom_id":${customId},"response":{"status_code":200,"request_id":"${requestId}","body":${body}},"error":null}\n`,
    );
  }
  return text.bytes();
}

/** As in an InferenceResult: of a batch of one row. */
function tensorJson(datatype: string, rows: OutputRows, row: number): string {
  const shape = [1, ...(rows.shapeOf(row) ?? [])];
  return `{"datatype":"${datatype}","shape":${JSON.stringify(shape)},"data":${flatJson(rows, row)}}`;
}

function errorsOf(result: ChunkResult, job: OpenAiJob): Uint8Array {
  const text = new TextBuffer();
  for (const { index, error } of result.failures) {
    const { id, requestId, customId } = identity(result, job, index);
    const { code, message } = error;
    // As that API has it: a request that was never sent has no response.
    const response =
      code === 'batch_expired'
        ? null
        : { status_code: ERROR_CATALOGUE[code].status, request_id: requestId, body: problemOf(error) };
    text.add(
      `{"id":"${id}","custom_id":${customId},"response":${JSON.stringify(response)},"error":${JSON.stringify({ code, message })}}\n`,
    );
  }
  return text.bytes();
}

function problemOf({ code, message, details }: ItemError): object {
  const { status, sentence } = ERROR_CATALOGUE[code];
  return {
    error: { code, message, type: status < 500 ? 'invalid_request_error' : 'server_error' },
    title: sentence,
    status,
    ...(details && { details }),
  };
}

function identity(
  { firstRow, rowNumbers, ids }: ChunkResult,
  { job }: OpenAiJob,
  index: number,
): { id: string; requestId: string; customId: string } {
  const row = rowNumbers?.[index] ?? firstRow + index;
  const hash = createHash('sha256').update(`${job}/${row}`).digest('hex').slice(0, 32);
  return {
    id: `batch_req_${hash}`,
    requestId: `req_${hash}`,
    customId: JSON.stringify(ids?.[index] ?? null),
  };
}
