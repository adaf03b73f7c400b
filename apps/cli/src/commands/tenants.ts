/** `remuda tenants list|show|set`: the share of each tenant, and what it may have waiting. */
import { Tenant, type TenantLimits, TenantList } from '@remuda/schemas';
import { ProblemError } from '../api/api-client.js';
import { EXIT } from '../exit-codes.js';
import { type Column, tableLines } from '../terminal/table.js';
import type { Terminal } from '../terminal/terminal.js';
import { actor } from './actor.js';
import { type ApiOptions, apiOf, type CommandContext, printJson } from './context.js';

const pathOf = (name: string): string => `/v1/admin/tenants/${encodeURIComponent(name)}`;

export async function listTenants(
  options: ApiOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const call = { method: 'GET', path: '/v1/admin/tenants' } as const;
  const { tenants } = await apiOf(options, config).admin(call, TenantList);
  if (options.json) printJson(terminal, tenants);
  else for (const line of tenantLines(tenants, terminal)) terminal.out(line);
  return EXIT.ok;
}

export async function showTenant(
  name: string,
  options: ApiOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const tenant = await apiOf(options, config).admin({ method: 'GET', path: pathOf(name) }, Tenant);
  return show(tenant, options, terminal);
}

type Limit = number | 'none';

export interface SetTenantOptions extends ApiOptions {
  weight?: number;
  maxWaiting?: Limit;
  maxWaitingRows?: Limit;
  maxWaitingBytes?: Limit;
}

/** What is not named stays as it is. */
export async function setTenant(
  name: string,
  options: SetTenantOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const api = apiOf(options, config);
  const before = await api.admin({ method: 'GET', path: pathOf(name) }, Tenant).catch((error: unknown) => {
    if (error instanceof ProblemError && error.problem.code === 'tenant_not_found') return undefined;
    throw error;
  });
  const weight = options.weight ?? before?.weight;
  const limits: Partial<TenantLimits> = {
    ...before?.limits,
    ...given('max_waiting', options.maxWaiting),
    ...given('max_waiting_rows', options.maxWaitingRows),
    ...given('max_waiting_bytes', options.maxWaitingBytes),
  };
  const body = { ...(weight === undefined ? {} : { weight }), limits };
  return show(
    await api.admin({ method: 'PUT', path: pathOf(name), body }, Tenant, actor()),
    options,
    terminal,
  );
}

function given(name: keyof TenantLimits, value: Limit | undefined): Partial<TenantLimits> {
  return value === undefined ? {} : { [name]: value === 'none' ? null : value };
}

function show(tenant: Tenant, { json }: ApiOptions, terminal: Terminal): number {
  if (json) printJson(terminal, tenant);
  else for (const line of tenantLines([tenant], terminal)) terminal.out(line);
  return EXIT.ok;
}

const COLUMNS: readonly Column[] = [
  { title: 'tenant', shrinkTo: 10 },
  { title: 'weight', align: 'right' },
  { title: 'most waiting', align: 'right' },
  { title: 'rows', align: 'right' },
  { title: 'bytes', align: 'right' },
  { title: 'set' },
];

function tenantLines(tenants: readonly Tenant[], { colours, width }: Terminal): string[] {
  if (tenants.length === 0) return ['Nothing is set of any tenant, and there is no key: all is the default.'];
  const limit = (most: number | null): string => (most === null ? '-' : most.toLocaleString('en-US'));
  const rows = tenants.map(({ name, weight, limits, updated_at }) => [
    name,
    String(weight),
    limit(limits.max_waiting),
    limit(limits.max_waiting_rows),
    limit(limits.max_waiting_bytes),
    updated_at === null ? 'default' : `${updated_at.slice(0, 16).replace('T', ' ')}Z`,
  ]);
  return tableLines(COLUMNS, rows, { width, paintTitle: colours.dim });
}
