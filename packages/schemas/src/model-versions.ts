/** Versions of a model: how one is named, which are kept loaded, and when. */
import * as z from 'zod';

export const VersionNumber = z
  .string()
  .regex(/^[1-9]\d{0,8}$/, { error: 'a version number' })
  .describe('Number of a version: its folder in the repository.');

export const AliasName = z
  .string()
  .regex(/^(?!default$)[a-z][a-z0-9_-]{0,39}$/, {
    error: 'a lower-case letter, then letters, digits, "_" or "-"; at most 40; not "default"',
  })
  .describe('Another name of a version, such as stable or canary.');

export const VersionRef = z
  .string()
  .regex(/^(?:[1-9]\d{0,8}|[a-z][a-z0-9_-]{0,39})$/, { error: 'a version number or an alias' })
  .describe('A version by its number or by an alias.');

/** latest: the newest one; all; the newest N; or those named. What an alias or a split names is kept besides. */
export const VersionPolicy = z
  .union([
    z.enum(['latest', 'all']),
    z.strictObject({ latest: z.int().min(1).max(1_000) }),
    z.strictObject({ only: z.array(z.union([VersionNumber, z.int().min(1).transform(String)])).min(1) }),
  ])
  .describe('latest, all, {latest: N} or {only: [1, 3]}.');
export type VersionPolicy = z.infer<typeof VersionPolicy>;

export const LOAD_MODES = ['eager', 'on_demand', 'explicit'] as const;
export const LoadMode = z
  .enum(LOAD_MODES)
  .describe(
    'eager: at the start of a worker. on_demand: with the first request, which waits for it. explicit: when the admin API says so.',
  );
export type LoadMode = z.infer<typeof LoadMode>;

/** loading → warming → verifying → ready → draining → unloaded; failed, with the reason, from any of the first three. */
export const LOAD_STATES = [
  'loading',
  'warming',
  'verifying',
  'ready',
  'draining',
  'unloaded',
  'failed',
] as const;
export const LoadState = z.enum(LOAD_STATES);
export type LoadState = z.infer<typeof LoadState>;
