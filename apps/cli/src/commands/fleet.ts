/** `remuda fleet`: the workers that are alive, as their heartbeats say. */
import type { Fleet, WorkerHeartbeat } from '@remuda/schemas';
import { EXIT } from '../exit-codes.js';
import { megabytes } from '../terminal/figures.js';
import { type Cell, type Column, tableLines } from '../terminal/table.js';
import type { Colours, Terminal } from '../terminal/terminal.js';
import { type ApiOptions, apiOf, type CommandContext, printJson } from './context.js';
import { deviceLines } from './device-lines.js';

export interface FleetOptions extends ApiOptions {
  devices?: boolean;
}

export async function fleet(options: FleetOptions, { terminal, config }: CommandContext): Promise<number> {
  const answer = await apiOf(options, config).fleet();
  if (options.json) printJson(terminal, answer);
  else for (const line of linesOf(answer, options, terminal)) terminal.out(line);
  return EXIT.ok;
}

function linesOf(answer: Fleet, { devices }: FleetOptions, terminal: Terminal): string[] {
  return devices && answer.workers.length > 0 ? deviceLines(answer, terminal) : fleetLines(answer, terminal);
}

const COLUMNS: readonly Column[] = [
  { title: 'worker', shrinkTo: 16 },
  { title: 'host', shrinkTo: 8 },
  { title: 'state' },
  { title: 'health' },
  { title: 'devices', shrinkTo: 8 },
  { title: 'models', shrinkTo: 8 },
  { title: 'rows/s', align: 'right' },
  { title: 'batch', align: 'right' },
  { title: 'rss', align: 'right' },
];

export function fleetLines({ workers }: Fleet, { colours, width }: Terminal): string[] {
  if (workers.length === 0) return ['No worker is alive. `remuda up` starts one.'];
  const rows = workers.map((worker) => rowOf(worker, colours));
  return [
    ...tableLines(COLUMNS, rows, { width, paintTitle: colours.dim }),
    ...workers.flatMap((worker) => troubleOf(worker).map((line) => colours.red(line))),
  ];
}

function rowOf(worker: WorkerHeartbeat, { green, red }: Colours): (string | Cell)[] {
  const { worker_id, host, state, healthy, devices, models, rows_per_s, batch_mean } = worker;
  const failed = models.filter((model) => model.state === 'failed').length;
  const ready = models.filter((model) => model.state === 'ready').length;
  return [
    worker_id,
    host,
    state,
    healthy ? { text: 'ok', paint: green } : { text: 'unhealthy', paint: red },
    devices.map(({ device, runner }) => (runner === 'ready' ? device : `${device} ${runner}`)).join(', '),
    `${ready} ready${failed > 0 ? `, ${failed} failed` : ''}`,
    rows_per_s.toFixed(1),
    batch_mean.toFixed(1),
    megabytes(memoryOf(worker)),
  ];
}

/** Of the worker and its runners: what it costs its machine. */
function memoryOf({ rss_bytes, devices }: WorkerHeartbeat): number {
  return devices.reduce((sum, { runner_rss_bytes }) => sum + (runner_rss_bytes ?? 0), rss_bytes);
}

function troubleOf({ worker_id, unhealthy_reason, models }: WorkerHeartbeat): string[] {
  return [
    ...(unhealthy_reason ? [`${worker_id}: ${unhealthy_reason}`] : []),
    ...models
      .filter(({ state }) => state === 'failed')
      .map(
        ({ model, version, device, reason }) =>
          `${worker_id}: ${versionText(model, version)} on ${device}: ${reason}`,
      ),
  ];
}

/** A model whose model.yaml cannot be read has no version yet. */
function versionText(model: string, version: string): string {
  return version ? `${model} version ${version}` : model;
}
