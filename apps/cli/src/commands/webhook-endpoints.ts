/** `remuda webhooks endpoints | secret`: addresses that are told of every request, and what signs what they get. */
import {
  WebhookEndpoint,
  WebhookEndpointList,
  type WebhookEndpointSpec,
  type WebhookEvent,
  WebhookSigningSecret,
} from '@remuda/schemas';
import * as z from 'zod';
import { usageError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { type Column, tableLines } from '../terminal/table.js';
import type { Terminal } from '../terminal/terminal.js';
import { actor } from './actor.js';
import { type ApiOptions, apiOf, type CommandContext, printJson } from './context.js';

const ENDPOINTS = '/v1/webhooks/endpoints';
const SECRET = '/v1/webhooks/secret';

export interface TenantOptions extends ApiOptions {
  tenant?: string;
}

export async function listEndpoints(
  options: TenantOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const api = apiOf(options, config);
  const answer = await api.ask(WebhookEndpointList, 'GET', ofTenant(ENDPOINTS, options));
  if (options.json) printJson(terminal, answer);
  else for (const line of endpointLines(answer.endpoints, terminal)) terminal.out(line);
  return EXIT.ok;
}

const COLUMNS: readonly Column[] = [
  { title: 'endpoint' },
  { title: 'address', shrinkTo: 16, wrap: true },
  { title: 'events', shrinkTo: 12, wrap: true },
  { title: 'payload' },
  { title: 'key' },
  { title: 'state', shrinkTo: 16, wrap: true },
];

function endpointLines(endpoints: readonly WebhookEndpoint[], { colours, width }: Terminal): string[] {
  if (endpoints.length === 0) return ['No endpoints. remuda webhooks endpoints add URL adds one.'];
  const rows = endpoints.map(({ id, url, events, payload, key_id, disabled }) => [
    id,
    url,
    events?.join(', ') ?? 'all',
    payload,
    key_id ?? 'all',
    disabled
      ? { text: `disabled: ${disabled.reason}`, paint: colours.red }
      : { text: 'enabled', paint: colours.green },
  ]);
  return tableLines(COLUMNS, rows, { width, paintTitle: colours.dim });
}

export interface AddOptions extends TenantOptions {
  events?: WebhookEvent[];
  thin?: boolean;
  onlyKey?: string;
}

export async function addEndpoint(
  url: string,
  options: AddOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const { events, thin, onlyKey } = options;
  const spec: WebhookEndpointSpec = { url, events, payload: thin ? 'thin' : undefined, key_id: onlyKey };
  const api = apiOf(options, config);
  const endpoint = await api.admin(
    { method: 'POST', path: ofTenant(ENDPOINTS, options), body: spec },
    WebhookEndpoint,
    actor(),
  );
  if (options.json) printJson(terminal, endpoint);
  else terminal.out(`${endpoint.id}: ${endpoint.url} is told of every request from now on`);
  return EXIT.ok;
}

export async function enableEndpoint(
  id: string,
  options: TenantOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const api = apiOf(options, config);
  const path = ofTenant(`${ENDPOINTS}/${encodeURIComponent(id)}:enable`, options);
  const endpoint = await api.admin({ method: 'POST', path }, WebhookEndpoint, actor());
  if (options.json) printJson(terminal, endpoint);
  else terminal.out(`${id} is enabled`);
  return EXIT.ok;
}

export async function removeEndpoint(
  id: string,
  options: TenantOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const api = apiOf(options, config);
  const path = ofTenant(`${ENDPOINTS}/${encodeURIComponent(id)}`, options);
  await api.admin({ method: 'DELETE', path }, z.unknown(), actor());
  if (options.json) printJson(terminal, { id, removed: true });
  else terminal.out(`${id} is deleted; what was pending for it is given up`);
  return EXIT.ok;
}

export interface SecretOptions extends TenantOptions {
  rotate?: boolean;
  overlap?: number;
}

export async function webhookSecret(
  options: SecretOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const { rotate, overlap } = options;
  if (overlap !== undefined && !rotate) throw usageError('--overlap says how to rotate: give --rotate too.');
  const api = apiOf(options, config);
  const secret = rotate
    ? await api.admin(
        {
          method: 'POST',
          path: ofTenant(`${SECRET}:rotate`, options),
          body: overlap === undefined ? {} : { overlap_s: overlap },
        },
        WebhookSigningSecret,
        actor(),
      )
    : await api.ask(WebhookSigningSecret, 'GET', ofTenant(SECRET, options));
  if (options.json) printJson(terminal, secret);
  else {
    terminal.out(secret.secret);
    if (secret.previous_until) terminal.note(`The one before signs too, until ${secret.previous_until}.`);
  }
  return EXIT.ok;
}

function ofTenant(path: string, { tenant }: TenantOptions): string {
  return tenant === undefined ? path : `${path}?tenant=${encodeURIComponent(tenant)}`;
}
