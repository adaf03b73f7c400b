/**
 * Whether a version fits into the memory that models may take on a device, and what has to go to make room: the least
 * recently used first, never what is pinned or in use. Pure.
 */

/** Something that takes memory on the device, or has been promised it. */
export interface Occupant {
  key: string;
  bytes: number;
  /** Unix milliseconds; 0: never. */
  lastUsedAt: number;
  /** May be unloaded for the newcomer. */
  evictable: boolean;
}

export type Room = { fits: true; evict: string[] } | { fits: false; missing: number; held: number };

/** @param budget null: no limit */
export function roomFor(budget: number | null, occupants: readonly Occupant[], bytes: number): Room {
  if (budget === null) return { fits: true, evict: [] };
  const held = occupants.reduce((sum, occupant) => sum + occupant.bytes, 0);
  let missing = held + bytes - budget;
  const evict: string[] = [];
  const byAge = occupants.filter((one) => one.evictable).sort((a, b) => a.lastUsedAt - b.lastUsedAt);
  for (const occupant of byAge) {
    if (missing <= 0) break;
    evict.push(occupant.key);
    missing -= occupant.bytes;
  }
  return missing > 0 ? { fits: false, missing, held } : { fits: true, evict };
}

const UNITS = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 } as const;
const AMOUNT = /^(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|TiB)$/;
const DEVICE = /^[a-z]+(?::\d{1,3})?$/;

/**
 * "cpu=2GiB,cuda:0=6GiB" as bytes by device.
 * @throws Error saying which part is wrong and what it should be
 */
export function parseBudgets(text: string): Map<string, number> {
  const budgets = new Map<string, number>();
  for (const part of text.split(',').filter((one) => one.trim() !== '')) {
    const [device = '', amount = ''] = part.split('=').map((side) => side.trim());
    const [, number, unit] = AMOUNT.exec(amount) ?? [];
    if (!DEVICE.test(device) || number === undefined) {
      throw new Error(`"${part.trim()}" is not DEVICE=AMOUNT, such as cpu=2GiB or cuda:0=512MiB`);
    }
    budgets.set(device, Math.floor(Number(number) * UNITS[unit as keyof typeof UNITS]));
  }
  return budgets;
}

/** 1.5 GiB, 640.0 MiB: for messages. */
export function showBytes(bytes: number): string {
  const unit = bytes >= UNITS.GiB ? 'GiB' : 'MiB';
  return `${(bytes / UNITS[unit]).toFixed(1)} ${unit}`;
}
