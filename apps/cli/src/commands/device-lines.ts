/** `remuda fleet --devices`: what each worker found on its machine, and which providers really load there. */
import type { DeviceStatus, Fleet, WorkerHeartbeat } from '@remuda/schemas';
import { type Cell, type Column, tableLines } from '../terminal/table.js';
import type { Terminal } from '../terminal/terminal.js';

const COLUMNS: readonly Column[] = [
  { title: 'worker', shrinkTo: 12 },
  { title: 'device' },
  { title: 'what', shrinkTo: 20 },
  { title: 'free', align: 'right' },
  { title: 'total', align: 'right' },
  { title: 'models', align: 'right' },
  { title: 'busy', align: 'right' },
  { title: 'capability', align: 'right' },
  { title: 'provider', shrinkTo: 12 },
];

export function deviceLines({ workers }: Fleet, { colours, width }: Terminal): string[] {
  const rows = workers.flatMap((worker) =>
    worker.devices.map((device): (string | Cell)[] => [
      worker.worker_id,
      device.device,
      device.device_class === 'cpu' ? cpuText(worker, device) : device.description,
      gibibytes(device.memory_free_bytes),
      gibibytes(device.memory_total_bytes),
      modelsCell(device),
      device.utilisation === null ? '' : `${Math.round(device.utilisation * 100)} %`,
      device.compute_capability === null ? '' : String(device.compute_capability),
      providerCell(device, colours.red),
    ]),
  );
  return [
    ...tableLines(COLUMNS, rows, { width, paintTitle: colours.dim }),
    ...workers.flatMap(({ worker_id, devices }) =>
      devices.flatMap(({ device, providers }) =>
        providers
          .filter(({ ok }) => !ok)
          .map(({ provider, reason }) => colours.red(`${worker_id}: ${provider} on ${device}: ${reason}`)),
      ),
    ),
  ];
}

function cpuText({ cpu, cores }: WorkerHeartbeat, { description }: DeviceStatus): string {
  if (!cpu) return description;
  const sets = cpu.instruction_sets.length > 0 ? `, ${cpu.instruction_sets.join(' ')}` : '';
  return `${cpu.model}, ${cores} of ${cpu.threads} threads${sets}`;
}

function providerCell({ providers }: DeviceStatus, red: (text: string) => string): string | Cell {
  const [first] = providers;
  if (!first) return '';
  return first.ok ? first.provider : { text: `${first.provider} fails`, paint: red };
}

/** Beside it what a budget lets them take, where there is one. */
function modelsCell({ memory_used_bytes, memory_budget_bytes }: DeviceStatus): string {
  const used = gibibytes(memory_used_bytes);
  return memory_budget_bytes === null ? used : `${used} of ${gibibytes(memory_budget_bytes)}`;
}

function gibibytes(bytes: number | null): string {
  return bytes === null ? '' : `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
