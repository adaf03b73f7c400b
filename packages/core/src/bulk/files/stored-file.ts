/** What is known of a file: the same JSON in Redis and beside its content on the disk. Both are parsed here alone. */
import { BULK_FILE_PURPOSES, type BulkFile, BulkFileId } from '@remuda/schemas';
import * as z from 'zod';
import { newBulkFileId } from '../../ids.js';
import type { NewFile } from '../bulk-use-cases.js';

export const StoredFile = z.object({
  id: BulkFileId,
  tenant: z.string(),
  filename: z.string(),
  purpose: z.enum(BULK_FILE_PURPOSES),
  bytes: z.int().min(0),
  /** Unix milliseconds. */
  created_ms: z.int(),
  expires_ms: z.int().nullable(),
});
export type StoredFile = z.infer<typeof StoredFile>;

const LONGEST_NAME = 255;

/** @param now Unix milliseconds */
export function storedFile(facts: NewFile, bytes: number, now: number): StoredFile {
  const { id = newBulkFileId(now), tenant, filename, purpose, keptS } = facts;
  return {
    ...{ id, tenant, purpose, bytes },
    filename: plainName(filename),
    created_ms: now,
    expires_ms: keptS === null ? null : now + keptS * 1_000,
  };
}

/** A name is shown and sent as a header; it never becomes a path. */
function plainName(given: string): string {
  const last = given.split(/[\\/]/).at(-1) ?? '';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  const plain = last.replace(/[\x00-\x1f\x7f]/g, '');
  // By characters: half of one could not be sent.
  return [...plain].slice(0, LONGEST_NAME).join('') || 'file';
}

/** undefined: it is none, or it was cut off while it was written. */
export function parseStored(text: string): StoredFile | undefined {
  try {
    return StoredFile.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

export function isExpired({ expires_ms }: StoredFile, now: number): boolean {
  return expires_ms !== null && expires_ms <= now;
}

/** As it is shown. */
export function shownFile({ id, bytes, created_ms, expires_ms, filename, purpose }: StoredFile): BulkFile {
  return {
    ...{ id, object: 'file', bytes, filename, purpose, status: 'processed' },
    created_at: Math.floor(created_ms / 1_000),
    // Rounded up: it is there until then.
    expires_at: expires_ms === null ? null : Math.ceil(expires_ms / 1_000),
  };
}
