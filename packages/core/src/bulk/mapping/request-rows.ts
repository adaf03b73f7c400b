/**
 * Lines that are requests: a request object with its inputs by name, or a line of OpenAI's batch files around one. Inputs
 * go through the checks of the API, so that a line is judged as the request of its own that it could have been.
 */
import {
  BATCH_ENDPOINT,
  InputValue,
  InvalidInputError,
  isBatchEndpoint,
  type ModelSignature,
  RequestOptions,
  refuse,
  violationsOf,
} from '@remuda/schemas';
import * as z from 'zod';
import { checkParameters } from '../../requests/check-parameters.js';
import { imageInput } from '../../requests/image-text.js';
import type { GivenInput } from '../../requests/input-tensor.js';
import { rowsOf, validateInputs } from '../../requests/validate-inputs.js';
import type { RowBlock } from '../columns.js';
import type { InputRows } from '../row-items.js';
import type { RowFailures } from './row-failures.js';

const Inputs = z.record(z.string().min(1).max(256), InputValue);

/** What a request of its own may hold; what only makes sense there (a webhook, a lane) is passed over. */
const RequestLine = RequestOptions.extend({
  inputs: Inputs,
  custom_id: z.string().optional(),
  model: z.string().optional(),
});

/** Method and url may have been looked at, and left out, where lines were told apart. */
const OpenAiLine = z.looseObject({
  method: z.literal('POST').optional(),
  url: z.string().optional(),
  body: RequestLine,
});

/** Each row a run of its own; those that do not fit fail. */
export function mapRequests(
  block: RowBlock,
  signature: ModelSignature,
  parameters: Record<string, unknown> | undefined,
  failures: RowFailures,
): InputRows[] {
  const runs: InputRows[] = [];
  const lineOf = linesOf(block);
  for (let row = 0; row < block.rows; row++) {
    if (failures.out[row]) continue;
    try {
      runs.push(requestRow(lineOf(row), row, signature, parameters));
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      failures.fail(row, 'invalid_row', error.message, { violations: error.violations });
    }
  }
  return runs;
}

function requestRow(
  line: Record<string, unknown>,
  row: number,
  signature: ModelSignature,
  common: Record<string, unknown> | undefined,
): InputRows {
  const path = 'body' in line ? ['body'] : [];
  const request = path.length > 0 ? bodyOf(line, signature) : parsed(RequestLine, line);
  if (request.model !== undefined && request.model !== signature.model) {
    refuse([...path, 'model'], `${signature.model}, the model of the job`, request.model);
  }
  const at = [...path, 'inputs'];
  const tensors = validateInputs(givenInputs(request.inputs, signature, at), signature, at);
  const rows = rowsOf(tensors, signature);
  if (rows !== 1) refuse(at, 'one row a line', `${rows} rows`);
  const own = { ...common, ...request.parameters };
  const parameters = checkParameters(own, signature, path);
  return { from: row, rows: 1, tensors, ...(parameters && { parameters }) };
}

function bodyOf(line: Record<string, unknown>, { model }: ModelSignature): z.infer<typeof RequestLine> {
  const { url, body } = parsed(OpenAiLine, line);
  if (url !== undefined && !isBatchEndpoint(url, model))
    refuse(['url'], `${BATCH_ENDPOINT} or /v1/models/${model}/requests`, `"${url}"`);
  return body;
}

function parsed<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (!result.success) throw new InvalidInputError(violationsOf(result.error, value));
  return result.data;
}

function givenInputs(
  inputs: z.infer<typeof Inputs>,
  signature: ModelSignature,
  at: readonly PropertyKey[],
): GivenInput[] {
  return Object.entries(inputs).map(([name, value]) => {
    const given = { name, value, path: [...at, name] };
    const kind = signature.inputs.find((input) => input.name === name)?.kind;
    return kind === 'image' ? imageInput(given) : given;
  });
}

/** The line as an object: it stands in one column, or its keys are columns. */
function linesOf({ columns }: RowBlock): (row: number) => Record<string, unknown> {
  const [only] = columns;
  const byKey = columns.some(({ name }) => name === 'inputs' || name === 'body');
  if (!byKey && columns.length === 1 && only?.type === 'json') {
    return (row) => only.values[row] as Record<string, unknown>;
  }
  return (row) => {
    const line: Record<string, unknown> = {};
    for (const column of columns) {
      if (column.nulls?.[row] || column.type === 'list') continue;
      const value: unknown = column.values[row];
      if (value !== null && value !== undefined) line[column.name] = value;
    }
    return line;
  };
}
