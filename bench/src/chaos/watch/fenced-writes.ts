/**
 * Counts the writes of workers that had lost their request and were refused: that the fence was put to the test. Each
 * worker process counts its own; what one counts between the last look and a kill -9 is not known.
 */
import { sumOf } from '../../rig/metrics-text.js';
import type { ChaosFleet } from '../fleet/chaos-fleet.js';

const EVERY_MS = 1_000;
const ANSWER_MS = 2_000;

export class FencedWrites {
  readonly #fleet: ChaosFleet;
  /** By worker process. */
  readonly #seen = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(fleet: ChaosFleet) {
    this.#fleet = fleet;
  }

  get total(): number {
    return [...this.#seen.values()].reduce((sum, count) => sum + count, 0);
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.look(), EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async look(): Promise<void> {
    await Promise.all(
      this.#fleet.workers
        .filter(({ serving }) => serving)
        .map(async ({ id, url }) => {
          try {
            const response = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(ANSWER_MS) });
            this.#seen.set(id, sumOf(fencedOnly(await response.text()), 'remuda_fenced_writes_total'));
          } catch {
            // It has ended meanwhile, or stands still.
          }
        }),
    );
  }
}

/** Without writes that came too late for another reason: the request was cancelled, say. */
function fencedOnly(text: string): string {
  return text
    .split('\n')
    .filter((line) => line.includes('reason="fenced"'))
    .join('\n');
}
