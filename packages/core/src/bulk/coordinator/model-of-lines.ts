/** Which model a file of requests is for: what the first line that can be read says in its body. */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { ModelName } from '@remuda/schemas';
import { RemudaError } from '../../errors.js';

/** Lines that may be bad before the file is given up. */
const MOST_LINES = 1_000;

/** @throws RemudaError invalid_file */
export async function modelOfLines(path: string): Promise<string> {
  const stream = createReadStream(path);
  const lines = createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY });
  let seen = 0;
  try {
    for await (const line of lines) {
      const model = modelOf(line);
      if (model !== null) return model;
      if (++seen >= MOST_LINES) break;
    }
  } finally {
    lines.close();
    stream.destroy();
  }
  throw new RemudaError(
    'invalid_file',
    seen === 0
      ? 'the input file is empty: it needs a line {"custom_id", "method", "url", "body"} for each request'
      : `none of the first ${seen} lines is a JSON object whose "body" names a "model"`,
  );
}

function modelOf(line: string): string | null {
  try {
    const { body } = JSON.parse(line) as { body?: { model?: unknown } };
    const model = ModelName.safeParse(body?.model);
    return model.success ? model.data : null;
  } catch {
    return null;
  }
}
