/**
 * The identity of a version: sha256 over its files and what of the configuration changes what it computes. All other
 * settings say how it is served; two workers may differ in them and still give the same answers.
 */
import { createHash } from 'node:crypto';
import type { HarnessConfig } from '@remuda/schemas';

/** Part of the digest: another value is another version. */
export const IDENTITY_KEYS = [
  'harness',
  'model_path',
  'variants',
  'precision',
  'batch_axis',
  'padding',
  'model_kwargs',
] as const satisfies readonly (keyof HarnessConfig)[];

/** Cases that are run to see whether a version answers rightly; they do not change what it computes. */
const GOLDEN_FOLDER = /^golden(?:\/|$)/;

/** Whether a file of a version folder is part of its digest. */
export function isIdentityFile(name: string): boolean {
  return !GOLDEN_FOLDER.test(name);
}

/**
 * @param harnessHash sha256 of the harness file beside model.yaml; undefined: a kind of the registry
 * @param files name and sha256 of each file, in the order of the names
 */
export function versionDigest(
  config: HarnessConfig,
  harnessHash: string | undefined,
  files: readonly (readonly [name: string, hash: string])[],
): string {
  const identity = Object.fromEntries(IDENTITY_KEYS.map((key) => [key, config[key]]));
  const parts = [
    `config ${stableJson(identity)}`,
    ...(harnessHash === undefined ? [] : [`harness ${harnessHash}`]),
    ...files.map(([name, hash]) => `file ${name} ${hash}`),
  ];
  // Each part with its length before it, so that no two lists of parts give the same bytes.
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:${part}`);
  return hash.digest('hex');
}

/** JSON with the keys in order: a configuration whose lines were moved is the same configuration. */
export function stableJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
