/**
 * The form of an upload: `file`, `purpose` and, where it is not to be kept for ever, `expires_after`. The file goes to
 * the disk as it comes, wherever it stands in the form; what cannot be taken is refused before its first byte where that
 * is known by then.
 */
import type { BulkFiles, NewFile, StagedFile } from '@remuda/core/bulk/bulk-use-cases';
import { RemudaError } from '@remuda/core/errors';
import { InvalidInputError, refuse, violationsOf } from '@remuda/schemas';
import type { FastifyRequest } from 'fastify';
import * as z from 'zod';
import { binary } from '../openapi.js';
import { unsupportedType } from './content-types.js';

const FIELDS = {
  purpose: z.literal('batch').describe('What it is for: the input of a batch.'),
  'expires_after[anchor]': z.literal('created_at').optional(),
  'expires_after[seconds]': z
    .string()
    .regex(/^\d{1,7}$/, { error: 'a whole number of seconds' })
    .transform(Number)
    .pipe(z.int().min(3_600).max(2_592_000))
    .optional()
    .describe(
      'Seconds after which it goes: 3600 to 2592000 (30 days). Default: it is kept until it is deleted.',
    ),
};
const Fields = z
  .strictObject(FIELDS)
  .refine(
    (given) =>
      (given['expires_after[anchor]'] === undefined) === (given['expires_after[seconds]'] === undefined),
    {
      error: 'both of anchor and seconds, or neither',
      path: ['expires_after'],
    },
  );
type FieldName = keyof typeof FIELDS;

/** As it is documented. */
export const UploadForm = z.object({
  file: binary('The file.'),
  ...FIELDS,
  'expires_after[seconds]': z
    .string()
    .optional()
    .describe(FIELDS['expires_after[seconds]'].description ?? ''),
});

/** Of the form around the file. */
const MOST_AROUND_BYTES = 65_536;
const FORM = 'multipart/form-data';

export interface Upload {
  staged: StagedFile;
  facts: Omit<NewFile, 'tenant'>;
}

/** Takes the form to its end. @throws InvalidInputError, RemudaError; then nothing of the file is left */
export async function takeUpload(
  request: FastifyRequest,
  files: Pick<BulkFiles, 'stage'>,
  mostBytes: number,
): Promise<Upload> {
  if (!request.isMultipart()) throw unsupportedType(request.headers['content-type'], [FORM]);
  refuseAnnounced(request, mostBytes);
  const fields: Record<string, unknown> = {};
  let file: { staged: StagedFile; filename: string } | undefined;
  try {
    for await (const part of request.parts(limits(mostBytes))) {
      if (part.type === 'field') takeField(part.fieldname, part.value, fields);
      else if (part.fieldname !== 'file')
        refuse([part.fieldname], 'the file as part "file"', 'a file', 'invalid_request');
      else file = { staged: await files.stage(part.file, mostBytes), filename: part.filename };
    }
    if (!file) return refuse(['file'], 'a file', 'none', 'invalid_request');
    const parsed = Fields.safeParse(fields);
    if (!parsed.success) throw new InvalidInputError(violationsOf(parsed.error, fields), 'invalid_request');
    const { purpose, 'expires_after[seconds]': keptS = null } = parsed.data;
    return { staged: file.staged, facts: { filename: file.filename ?? '', purpose, keptS } };
  } catch (error) {
    await file?.staged.drop();
    throw error;
  }
}

function refuseAnnounced({ headers }: FastifyRequest, mostBytes: number): void {
  const announced = Number(headers['content-length'] ?? 0);
  if (announced <= mostBytes + MOST_AROUND_BYTES) return;
  throw new RemudaError(
    'payload_too_large',
    `expected a file of at most ${mostBytes} bytes, received a body of ${announced}: compress it, send it in parts, or raise REMUDA_API_MAX_FILE_BYTES`,
  );
}

/** The size is watched by who takes the stream: past it the parser would only be silent. */
function limits(mostBytes: number) {
  const most = { fileSize: mostBytes + 1, files: 1, fields: 8, parts: 9, fieldSize: 1_024 };
  return { limits: most, throwFileSizeLimit: false };
}

/** Each by itself as soon as it is there: what is refused here saves the way of the file. */
function takeField(name: string, value: unknown, fields: Record<string, unknown>): void {
  if (!Object.hasOwn(FIELDS, name))
    refuse([name], `one of file, ${Object.keys(FIELDS).join(', ')}`, 'a field', 'invalid_request');
  if (Object.hasOwn(fields, name)) refuse([name], 'each field once', 'it a second time', 'invalid_request');
  const parsed = FIELDS[name as FieldName].safeParse(value);
  if (!parsed.success)
    throw new InvalidInputError(violationsOf(parsed.error, value, [name]), 'invalid_request');
  fields[name] = value;
}
