/** Who may do what: scopes of API keys and the caller that a valid key stands for. */
import * as z from 'zod';

export const SCOPES = ['submit', 'read', 'admin'] as const;
export const Scope = z
  .enum(SCOPES)
  .describe(
    'submit: send and cancel requests. read: see requests, results and models. admin: models, keys, tenants, other tenants.',
  );
export type Scope = z.infer<typeof Scope>;

export const TenantName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, { error: 'lower-case letters, digits, "_" or "-"; at most 64' })
  .describe('Whose requests they are.');

/** Where the server asks for no keys, and for keys that name no tenant. */
export const DEFAULT_TENANT = 'default';
