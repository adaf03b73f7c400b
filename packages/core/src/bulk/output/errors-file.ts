/**
 * The file of the rows that failed: a line of JSON for each, with the row as it came, to be corrected and sent again:
 * the file can itself be an input. Parts are lines; joined they are the file.
 */
import type { ChunkResult } from '../chunk.js';
import type { OutputEncoder } from './bulk-output.js';
import { exactBigInts } from './json-values.js';
import { type OpenAiJob, openAiErrorLines } from './openai-lines.js';
import { TextBuffer } from './text-buffer.js';
import { TextEncoder } from './text-output.js';

export interface ErrorsOptions {
  /** Whether rows have a custom_id. */
  ids: boolean;
  /** The form of that API's batches. */
  openai?: OpenAiJob;
}

/** An encoder as of outputs: the part of a chunk without failures is empty. */
export function createErrorsEncoder({ ids, openai }: ErrorsOptions): Promise<OutputEncoder> {
  const format = openai
    ? openAiErrorLines(openai)
    : { header: '', lines: (result: ChunkResult) => linesOf(result, ids) };
  return TextEncoder.of(format, 'none');
}

function linesOf({ failures, firstRow, rowNumbers, ids }: ChunkResult, hasIds: boolean): Uint8Array {
  const text = new TextBuffer();
  for (const { index, error, input } of failures) {
    const line = {
      row: rowNumbers?.[index] ?? firstRow + index,
      ...(hasIds && { custom_id: ids?.[index] ?? null }),
      code: error.code,
      message: error.message,
      input: input ?? null,
    };
    text.add(`${JSON.stringify(line, plain)}\n`);
  }
  return text.bytes();
}

/** Bytes stand in no line: where they come from does. */
function plain(key: string, value: unknown): unknown {
  if (value instanceof Uint8Array) return `${value.byteLength} bytes`;
  return exactBigInts(key, value);
}
