/** Files that batches read and write: as /v1/files of the OpenAI API has them. */
import * as z from 'zod';

export const BULK_FILE_PURPOSES = ['batch', 'batch_output'] as const;

export const BulkFileId = z
  .string()
  .regex(/^file-[A-Za-z0-9]{16,40}$/, { error: '"file-" and 16 to 40 letters and digits' })
  .describe('Identifies a file that was uploaded, or that a batch has written.');

export const BulkFile = z
  .strictObject({
    id: BulkFileId,
    object: z.literal('file'),
    bytes: z.int().min(0),
    created_at: z.int().describe('Unix seconds.'),
    expires_at: z.int().nullable().describe('Unix seconds; null: it is kept until it is deleted.'),
    filename: z.string(),
    purpose: z.enum(BULK_FILE_PURPOSES),
    status: z.literal('processed'),
  })
  .meta({ id: 'BulkFile' });
export type BulkFile = z.infer<typeof BulkFile>;

export const BulkFilePage = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(BulkFile),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
    has_more: z.boolean(),
  })
  .meta({ id: 'BulkFilePage' });
export type BulkFilePage = z.infer<typeof BulkFilePage>;

export const BulkFileDeleted = z
  .strictObject({ id: BulkFileId, object: z.literal('file'), deleted: z.literal(true) })
  .meta({ id: 'BulkFileDeleted' });
export type BulkFileDeleted = z.infer<typeof BulkFileDeleted>;
