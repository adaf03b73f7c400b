/**
 * Who may do what: API keys and their scopes, tenants with their share and their limits, and the log of what was done by
 * whom. The secret of a key stands in one shape alone, IssuedKey, which is answered once.
 */
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

export const KeyId = z
  .string()
  .regex(/^[a-z0-9]{12}$/, { error: 'the id of a key: 12 lower-case letters and digits' })
  .describe('Names the key in lists and logs; no secret.');

export const KeyName = z
  .string()
  .regex(/^[^\p{C}]{1,100}$/u, { error: '1 to 100 printable characters' })
  .describe('For people: who or what uses it.');

/** Of the calls of one key, whichever API process they come to. */
export const RateLimit = z
  .strictObject({
    requests_per_second: z
      .number()
      .min(0.01)
      .max(100_000)
      .describe('HTTP calls a second in the long run; a batch is one call.'),
    burst: z.int().min(1).max(1_000_000).describe('Most calls at once after a pause.'),
  })
  .meta({ id: 'RateLimit' });
export type RateLimit = z.infer<typeof RateLimit>;

const Time = z.iso.datetime({ offset: true });
const Scopes = z.array(Scope).min(1).max(SCOPES.length);

/** An API key as people see it. */
export const ApiKey = z
  .strictObject({
    id: KeyId,
    name: KeyName,
    tenant: TenantName,
    scopes: Scopes,
    rate_limit: RateLimit.nullable().describe('null: none.'),
    hint: z.string().describe('The last characters of its secret, to tell keys apart.'),
    created_at: Time,
    expires_at: Time.nullable().describe('null: never.'),
    rotated_at: Time.nullable().describe('When it got the secret that it has now; null: at its creation.'),
    old_secret_until: Time.nullable().describe('Until when the secret before is taken too; null: it is not.'),
    revoked_at: Time.nullable(),
    last_used_at: Time.nullable().describe('To about half a minute; null: never.'),
  })
  .meta({ id: 'ApiKey' });
export type ApiKey = z.infer<typeof ApiKey>;

/** POST /v1/admin/keys */
export const ApiKeyCreate = z
  .strictObject({
    name: KeyName,
    tenant: TenantName.default(DEFAULT_TENANT),
    scopes: Scopes.default(['submit', 'read']).refine((scopes) => new Set(scopes).size === scopes.length, {
      error: 'each scope once',
    }),
    expires_at: Time.nullable().default(null).describe('In the future; null: never.'),
    rate_limit: RateLimit.nullable().default(null).describe('null: none.'),
  })
  .meta({ id: 'ApiKeyCreate' });
export type ApiKeyCreate = z.infer<typeof ApiKeyCreate>;

const LONGEST_OVERLAP_S = 30 * 24 * 3600;

/** POST /v1/admin/keys/{id}:rotate; the body may be left out. */
export const ApiKeyRotate = z
  .strictObject({
    overlap_s: z
      .int()
      .min(0)
      .max(LONGEST_OVERLAP_S)
      .default(0)
      .describe('Seconds for which the secret before is taken too.'),
    expires_at: Time.nullable().optional().describe('A new end; without it the end stays.'),
  })
  .meta({ id: 'ApiKeyRotate' });
export type ApiKeyRotate = z.infer<typeof ApiKeyRotate>;

/** The answer to creating and to rotating a key: the one place where its secret is seen. */
export const IssuedKey = z
  .strictObject({
    key: ApiKey,
    secret: z
      .string()
      .describe('What goes behind "Authorization: Bearer". It is kept nowhere and shown only now.'),
  })
  .meta({ id: 'IssuedKey' });
export type IssuedKey = z.infer<typeof IssuedKey>;

export const ApiKeyList = z.strictObject({ keys: z.array(ApiKey) }).meta({ id: 'ApiKeyList' });

/** What a tenant may have waiting at most, over all its requests that have not ended; null: no limit of its own. */
export const TenantLimits = z
  .strictObject({
    max_waiting: z.int().min(0).nullable().default(null).describe('Requests; 0: none are taken.'),
    max_waiting_rows: z.int().min(0).nullable().default(null).describe('Rows.'),
    max_waiting_bytes: z.int().min(0).nullable().default(null).describe('Bytes of input.'),
  })
  .meta({ id: 'TenantLimits' });
export type TenantLimits = z.infer<typeof TenantLimits>;

const Weight = z
  .number()
  .min(0.01)
  .max(1_000)
  .describe('Share of the work while others wait too: one of weight 2 gets twice that of one of weight 1.');

/** PUT /v1/admin/tenants/{name}: the whole of what is set; what is left out is the default. */
export const TenantPut = z
  .strictObject({
    weight: Weight.default(1),
    limits: TenantLimits.default({ max_waiting: null, max_waiting_rows: null, max_waiting_bytes: null }),
  })
  .meta({ id: 'TenantPut' });
export type TenantPut = z.infer<typeof TenantPut>;

export const Tenant = z
  .strictObject({
    name: TenantName,
    weight: Weight,
    limits: TenantLimits,
    updated_at: Time.nullable().describe('null: nobody has set anything, all is the default.'),
  })
  .meta({ id: 'Tenant' });
export type Tenant = z.infer<typeof Tenant>;

export const TenantList = z.strictObject({ tenants: z.array(Tenant) }).meta({ id: 'TenantList' });

/** One call that changed something, or was to. Never holds a secret: bodies are not in it. */
export const AuditEntry = z
  .strictObject({
    id: z.string().describe('Place in the log; as `before` it leads to what is older.'),
    at: Time,
    key_id: z.string().nullable().describe('null: the server asked for no key, or it was done in Redis.'),
    tenant: z.string(),
    address: z.string().describe('Where the call came from.'),
    actor: z.string().nullable().describe('What the caller says it is (Remuda-Actor); not checked.'),
    action: z.string().describe('Method and route.'),
    target: z
      .record(z.string(), z.string())
      .describe('What it was done to: the parts of the path, and ids made.'),
    status: z.int().describe('HTTP status of the answer.'),
    code: z.string().nullable().describe('Error code, where it was refused.'),
    trace_id: z.string(),
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof AuditEntry>;

export const AuditPage = z
  .strictObject({ entries: z.array(AuditEntry).describe('Newest first.') })
  .meta({ id: 'AuditPage' });
