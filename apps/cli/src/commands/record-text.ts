/** A request that has not ended, as lines. */
import type { RequestRecord } from '@remuda/schemas';
import { itemErrorText } from '../api/problem-text.js';
import { plural } from '../terminal/figures.js';
import type { Terminal } from '../terminal/terminal.js';

export function recordLines(record: RequestRecord, { colours }: Terminal): string[] {
  const { request_id, status, model, version, items, rows, route, notices, error } = record;
  const facts = [
    `${model} version ${version}`,
    plural(items.total, 'item'),
    plural(rows, 'row'),
    `on ${route.device_class}`,
  ];
  return [
    `${colours.bold(request_id)}  ${status}  ${colours.dim(facts.join(', '))}`,
    ...notices.map((notice) => `  ${colours.yellow(notice)}`),
    ...(error ? [`  ${itemErrorText(error)}`] : []),
    `  remuda result ${request_id} --wait 30`,
  ];
}
