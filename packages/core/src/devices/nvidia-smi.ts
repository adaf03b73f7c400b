/**
 * NVIDIA GPUs as nvidia-smi lists them. A machine without one is as good as any other; a driver that does not know a
 * field is asked again without it; a fact that the driver keeps to itself ([N/A]) is unknown.
 */
import type { Device } from './machine.js';

/** Standard output of a program. Rejects with code ENOENT where there is no such program. */
export type RunProgram = (program: string, args: readonly string[]) => Promise<string>;

export interface GpuProbe {
  devices: Device[];
  notices: string[];
}

const FIELDS = [
  ...['index', 'uuid', 'name', 'memory.total', 'memory.free'],
  ...['utilization.gpu', 'driver_version', 'compute_cap'],
] as const;
type Field = (typeof FIELDS)[number];
/** Drivers before 495 or so have no compute_cap. */
const OLD_FIELDS = FIELDS.filter((field) => field !== 'compute_cap');
const CHANGING_FIELDS = ['index', 'memory.free', 'utilization.gpu'] as const satisfies readonly Field[];

type Row = Partial<Record<Field, string>>;

export async function probeGpus(run: RunProgram, now: number): Promise<GpuProbe> {
  try {
    const rows = await query(run, FIELDS).catch((error: unknown) => {
      if (!/is not a valid field to query/i.test(textOf(error))) throw error;
      return query(run, OLD_FIELDS);
    });
    return { devices: rows.map((row) => deviceOf(row, now)), notices: [] };
  } catch (error) {
    if (isAbsent(error)) return { devices: [], notices: [] };
    return {
      devices: [],
      notices: [`nvidia-smi is there and failed: ${textOf(error).trim().split('\n')[0]}`],
    };
  }
}

/** Free memory and utilisation by device name, for devices that are known. Rejects where they cannot be read. */
export async function probeGpuUse(
  run: RunProgram,
): Promise<Map<string, Pick<Device, 'memory_free_bytes' | 'utilisation'>>> {
  const rows = await query(run, CHANGING_FIELDS);
  return new Map(
    rows.map((row) => [
      `cuda:${row.index}`,
      { memory_free_bytes: bytesOf(row['memory.free']), utilisation: shareOf(row['utilization.gpu']) },
    ]),
  );
}

async function query(run: RunProgram, fields: readonly Field[]): Promise<Row[]> {
  const csv = await run('nvidia-smi', [`--query-gpu=${fields.join(',')}`, '--format=csv,noheader,nounits']);
  if (/is not a valid field to query/i.test(csv)) throw new Error(csv);
  return csv.split('\n').flatMap((line) => {
    const values = line.split(',').map((value) => value.trim());
    if (!/^\d+$/.test(values[0] ?? '')) return [];
    return [Object.fromEntries(fields.map((field, i) => [field, values[i] ?? '']))];
  });
}

function deviceOf(row: Row, now: number): Device {
  const total = bytesOf(row['memory.total']);
  const driver = known(row.driver_version);
  return {
    device: `cuda:${row.index}`,
    device_class: 'cuda',
    description: [
      known(row.name) ?? 'NVIDIA GPU',
      ...(total === null ? [] : [`${(total / 2 ** 30).toFixed(1)} GiB memory`]),
      ...(driver === null ? [] : [`driver ${driver}`]),
    ].join(', '),
    memory_total_bytes: total,
    memory_free_bytes: bytesOf(row['memory.free']),
    utilisation: shareOf(row['utilization.gpu']),
    compute_capability: numberOf(row.compute_cap),
    uuid: known(row.uuid),
    driver,
    probed_at: new Date(now).toISOString(),
  };
}

/** [N/A], [Not Supported], [Unknown Error], [GPU is lost]: all say that it is not known. */
function known(value: string | undefined): string | null {
  return value === undefined || value === '' || /^(\[.*\]|N\/A)$/.test(value) ? null : value;
}

function numberOf(value: string | undefined): number | null {
  const text = known(value);
  const number = text === null ? Number.NaN : Number(text);
  return Number.isFinite(number) ? number : null;
}

/** Mebibytes, as `nounits` leaves them. */
function bytesOf(value: string | undefined): number | null {
  const mebibytes = numberOf(value);
  return mebibytes === null ? null : Math.round(mebibytes * 2 ** 20);
}

function shareOf(percent: string | undefined): number | null {
  const number = numberOf(percent);
  return number === null ? null : Math.min(1, Math.max(0, number / 100));
}

/** No driver was ever installed, or it finds no GPU. */
function isAbsent(error: unknown): boolean {
  return (error as { code?: unknown }).code === 'ENOENT' || /No devices were found/i.test(textOf(error));
}

/** nvidia-smi writes its reasons to standard output. */
function textOf(error: unknown): string {
  const { stdout, message } = error as { stdout?: string; message?: string };
  return stdout || message || String(error);
}
