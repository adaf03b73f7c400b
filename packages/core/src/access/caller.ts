/** Who makes a call: what its API key stands for. Found at the edge, and handed inward with every use case. */
import { DEFAULT_TENANT, SCOPES, type Scope } from '@remuda/schemas';

export interface Caller {
  /** null: the server asks for no keys. */
  keyId: string | null;
  tenant: string;
  scopes: ReadonlySet<Scope>;
}

/** Everybody, where the server asks for no keys. */
export const OPEN_CALLER: Caller = { keyId: null, tenant: DEFAULT_TENANT, scopes: new Set(SCOPES) };
