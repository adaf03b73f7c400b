/** API keys for tests, made as `remuda keys create --redis` makes them, and how a call carries one. */
import { ApiKeys } from '@remuda/core/access/api-keys';
import { ApiKeyCreate, type IssuedKey } from '@remuda/schemas';
import type { Rig } from '../http/rig.js';

export interface TestKey extends IssuedKey {
  /** Header fields of a call with it. */
  auth: { authorization: string };
}

export async function issue(
  { redis, keys }: Pick<Rig, 'redis' | 'keys'>,
  wanted: Partial<ApiKeyCreate> = {},
): Promise<TestKey> {
  const store = new ApiKeys({ redis, keys });
  return bearing(await store.create(ApiKeyCreate.parse({ name: 'test', ...wanted })));
}

export function bearing(issued: IssuedKey): TestKey {
  return { ...issued, auth: { authorization: `Bearer ${issued.secret}` } };
}

export const ALL_SCOPES: ApiKeyCreate['scopes'] = ['submit', 'read', 'admin'];
