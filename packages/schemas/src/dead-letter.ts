/** What is kept of a request that was given up, so that it can be looked at and run again. */
import * as z from 'zod';
import { ItemError } from './errors.js';
import { ModelName, RequestId, RequestMetadata } from './inference-request.js';
import { VersionRef } from './model-versions.js';
import { ErrorClass } from './retries.js';

export const DeadItem = z
  .strictObject({
    index: z.int().min(0).describe('Place of the item in the request.'),
    id: z.string().nullable().describe('Name that the user gave to it.'),
    class: ErrorClass,
    error: ItemError,
  })
  .meta({ id: 'DeadItem' });
export type DeadItem = z.infer<typeof DeadItem>;

export const DeadLetter = z
  .strictObject({
    request_id: z.string(),
    model: z.string(),
    version: z.string(),
    tenant: z.string(),
    device_class: z.string(),
    class: ErrorClass.describe('Of its first item.'),
    code: z.string().describe('Error code of its first item.'),
    reason: z.string().describe('Message of its first item.'),
    attempts: z.int().describe('How often a worker took the request up.'),
    items: z
      .array(DeadItem)
      .describe('The items that were given up; others of the request had their outcome.'),
    items_total: z.int(),
    input_bytes: z.int().describe('Bytes of the inputs that are kept.'),
    metadata: RequestMetadata,
    trace_id: z.string(),
    created_at: z.iso.datetime(),
    died_at: z.iso.datetime(),
    expires_at: z.iso.datetime().describe('When it is removed with its inputs.'),
    redriven_as: z.string().nullable().describe('The request that is its second life.'),
  })
  .meta({ id: 'DeadLetter' });
export type DeadLetter = z.infer<typeof DeadLetter>;

export const DeadLetterPage = z
  .strictObject({
    dead_letters: z.array(DeadLetter),
    next_cursor: z.string().nullable(),
    total: z.int().nullable().describe('Of all tenants; null for who does not see them all.'),
  })
  .meta({ id: 'DeadLetterPage' });
export type DeadLetterPage = z.infer<typeof DeadLetterPage>;

/** What of a letter runs again. */
export const Redrive = z
  .strictObject({
    version: VersionRef.optional().describe(
      'Version or alias to run it on; default is what the model serves now.',
    ),
  })
  .meta({ id: 'Redrive' });

/** Which letters: by id, or all that fit. */
export const DeadLetterChoice = z
  .strictObject({
    ids: z.array(RequestId).min(1).max(1_000).optional(),
    model: ModelName.optional(),
    class: ErrorClass.optional(),
    limit: z
      .int()
      .min(1)
      .max(1_000)
      .default(1_000)
      .describe('Most letters that one call takes, oldest first.'),
  })
  .refine((choice) => choice.ids !== undefined || choice.model !== undefined || choice.class !== undefined, {
    error: 'at least one of "ids", "model" and "class"',
  })
  .meta({ id: 'DeadLetterChoice' });
export type DeadLetterChoice = z.infer<typeof DeadLetterChoice>;

export const RedriveMany = z
  .strictObject({ choose: DeadLetterChoice, version: VersionRef.optional() })
  .meta({ id: 'RedriveMany' });

/** What became of each chosen letter. */
export const RedriveAnswer = z
  .strictObject({
    redriven: z.array(z.strictObject({ request_id: z.string(), redriven_as: z.string() })),
    refused: z.array(z.strictObject({ request_id: z.string(), code: z.string(), reason: z.string() })),
  })
  .meta({ id: 'RedriveAnswer' });
export type RedriveAnswer = z.infer<typeof RedriveAnswer>;

export const DiscardAnswer = z.strictObject({ discarded: z.int() }).meta({ id: 'DiscardAnswer' });
