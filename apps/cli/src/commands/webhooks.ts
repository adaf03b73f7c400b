/** `remuda webhooks list | show | redeliver`: who was told of the end of a request, how that went, and once more. */
import {
  type WebhookAttempt,
  WebhookDelivery,
  WebhookDeliveryDetail,
  WebhookDeliveryList,
  type WebhookState,
} from '@remuda/schemas';
import { EXIT } from '../exit-codes.js';
import { plural } from '../terminal/figures.js';
import { type Cell, type Column, tableLines } from '../terminal/table.js';
import type { Colours, Terminal } from '../terminal/terminal.js';
import { type ApiOptions, apiOf, type CommandContext, printJson } from './context.js';

const PATH = '/v1/webhooks';

export async function listWebhooks(
  request: string,
  options: ApiOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const api = apiOf(options, config);
  const path = `/v1/requests/${encodeURIComponent(request)}/webhooks`;
  const answer = await api.ask(WebhookDeliveryList, 'GET', path);
  if (options.json) printJson(terminal, answer);
  else for (const line of listLines(answer.deliveries, terminal)) terminal.out(line);
  return EXIT.ok;
}

const COLUMNS: readonly Column[] = [
  { title: 'webhook' },
  { title: 'event' },
  { title: 'state' },
  { title: 'attempts', align: 'right' },
  { title: 'last', shrinkTo: 12, wrap: true },
  { title: 'next', shrinkTo: 10, wrap: true },
  { title: 'address', shrinkTo: 16, wrap: true },
];

function listLines(deliveries: readonly WebhookDelivery[], { colours, width }: Terminal): string[] {
  if (deliveries.length === 0) return ['Nobody is told of this request, or it has not ended yet.'];
  const rows = deliveries.map((delivery) => [
    delivery.id,
    delivery.type,
    stateCell(delivery.state, colours),
    String(delivery.attempts.length),
    lastOf(delivery),
    brief(delivery.next_attempt_at),
    delivery.url,
  ]);
  return tableLines(COLUMNS, rows, { width, paintTitle: colours.dim });
}

function stateCell(state: WebhookState, { green, red, yellow }: Colours): Cell {
  return { text: state, paint: { delivered: green, given_up: red, pending: yellow }[state] };
}

function lastOf({ attempts, reason }: WebhookDelivery): string {
  const last = attempts.at(-1);
  return reason ?? (last ? attemptText(last) : 'not tried yet');
}

function attemptText({ status, error }: WebhookAttempt): string {
  return error ?? `answered ${status}`;
}

export interface ShowOptions extends ApiOptions {
  body?: boolean;
}

export async function showWebhook(
  id: string,
  options: ShowOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const api = apiOf(options, config);
  const delivery = await api.ask(WebhookDeliveryDetail, 'GET', `${PATH}/${encodeURIComponent(id)}`);
  if (options.json) printJson(terminal, delivery);
  else if (options.body) terminal.out(delivery.body);
  else for (const line of detailLines(delivery, terminal)) terminal.out(line);
  return EXIT.ok;
}

const ATTEMPT_COLUMNS: readonly Column[] = [
  { title: 'attempt' },
  { title: 'outcome' },
  { title: 'ms', align: 'right' },
  { title: 'what came', shrinkTo: 20, wrap: true },
];

function detailLines(delivery: WebhookDeliveryDetail, { colours, width }: Terminal): string[] {
  const { id, type, subject, url, endpoint_id, state, reason, attempts, payload, body, trace_id } = delivery;
  const rows = attempts.map((attempt) => [
    brief(attempt.at),
    attempt.outcome,
    String(attempt.duration_ms),
    attemptText(attempt),
  ]);
  const next = delivery.next_attempt_at;
  return [
    `${colours.bold(id)}  ${stateCell(state, colours).paint?.(state)}  ${colours.dim(`${type} of ${subject}`)}`,
    ...(reason ? [`  ${colours.red(reason)}`] : []),
    `  to         ${url}${endpoint_id ? ` (endpoint ${endpoint_id})` : ''}`,
    `  body       ${payload}, ${plural(Buffer.byteLength(body), 'byte')}`,
    ...(next ? [`  next       ${brief(next)}`] : []),
    `  kept until ${brief(delivery.expires_at)}${state === 'pending' ? ' at least' : ''}`,
    `  trace      ${trace_id}`,
    ...(rows.length > 0
      ? ['', ...tableLines(ATTEMPT_COLUMNS, rows, { width, paintTitle: colours.dim })]
      : []),
  ];
}

export async function redeliverWebhook(
  id: string,
  options: ApiOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const api = apiOf(options, config);
  const delivery = await api.ask(WebhookDelivery, 'POST', `${PATH}/${encodeURIComponent(id)}/redeliver`);
  if (options.json) printJson(terminal, delivery);
  else
    terminal.out(`${id} is sent once more to ${delivery.url}; remuda webhooks show ${id} says how that goes`);
  return EXIT.ok;
}

function brief(time: string | null): string {
  return time === null ? '' : time.slice(0, 19).replace('T', ' ');
}
