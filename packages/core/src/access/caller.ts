/** Who makes a call: what its API key stands for. Found at the edge, and handed inward with every use case. */
import { DEFAULT_TENANT, type RateLimit, SCOPES, type Scope } from '@remuda/schemas';

export interface Caller {
  /** null: the server asks for no keys. */
  keyId: string | null;
  tenant: string;
  scopes: ReadonlySet<Scope>;
  /** null: none. */
  rateLimit?: RateLimit | null;
}

/** Everybody, where the server asks for no keys. */
export const OPEN_CALLER: Caller = { keyId: null, tenant: DEFAULT_TENANT, scopes: new Set(SCOPES) };

/** Whose requests a caller sees: those of its tenant; null: all. */
export type Sight = string | null;

export function sightOf({ tenant, scopes }: Pick<Caller, 'tenant' | 'scopes'>): Sight {
  return scopes.has('admin') ? null : tenant;
}
