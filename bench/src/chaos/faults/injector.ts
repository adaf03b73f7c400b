/** Carries out the faults of a plan, counts them, and has the recovery from each measured. */
import { setTimeout as sleep } from 'node:timers/promises';
import { FAULT_KINDS, type FaultName, type FaultTarget } from '../plan/fault-kinds.js';
import type { Fault } from '../plan/plan.js';
import type { Recoveries } from '../watch/recovery.js';
import type { Witness } from '../watch/witness.js';
import { NETWORK_FAULTS } from './network-faults.js';
import { JOB_FAULTS } from './old-jobs.js';
import { PROCESS_FAULTS } from './process-faults.js';
import { REDIS_FAULTS } from './redis-faults.js';
import { SINK_FAULTS } from './sink-faults.js';
import { type Site, type Strike, struckSlot } from './site.js';

const STRIKES: Partial<Record<FaultName, Strike>> = {
  ...PROCESS_FAULTS,
  ...REDIS_FAULTS,
  ...NETWORK_FAULTS,
  ...JOB_FAULTS,
  ...SINK_FAULTS,
};

/** Longest wait for something to be hit. */
const AIM_MS = 1_000;
const LOOK_EVERY_MS = 5;
const HURTS_WORKER: ReadonlySet<FaultTarget> = new Set(['worker', 'process']);

export interface InjectorOptions {
  site: Site;
  witness: Witness;
  recoveries: Recoveries;
  now(): number;
  say(line: string): void;
}

export class Injector {
  readonly #options: InjectorOptions;
  /** How many of each kind were carried out. */
  readonly byKind = new Map<FaultName, number>();
  /** Faults at the same place wait for each other: what is down cannot be killed. */
  readonly #turns = new Map<string, Promise<void>>();

  constructor(options: InjectorOptions) {
    this.#options = options;
  }

  get count(): number {
    return [...this.byKind.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Resolves when the disturbance is over. */
  inject(fault: Fault): Promise<void> {
    const places = this.#placesOf(fault);
    const free = Promise.all(places.map((place) => this.#turns.get(place)));
    const turn = free.then(() => this.#carryOut(fault));
    // Whoever waits for this one hears of its failure; the next at this place only of its end.
    for (const place of places)
      this.#turns.set(
        place,
        turn.catch(() => {}),
      );
    return turn;
  }

  async #carryOut(fault: Fault): Promise<void> {
    const { site, witness, recoveries, now, say } = this.#options;
    await this.#untilOthersServe(fault);
    await this.#takeAim(fault);
    const strike = STRIKES[fault.kind] as Strike;
    const { strikes } = FAULT_KINDS[fault.kind];
    const held = strikes === 'worker' ? witness.heldBy(struckSlot(fault, site).id) : [];
    say(describe(fault, site));
    const struckAt = now();
    if (held.length > 0) recoveries.untilAll(fault.kind, held, struckAt);
    await strike(fault, site);
    if (strikes === 'store' || strikes === 'api' || strikes === 'process')
      recoveries.untilFirst(fault.kind, now());
    this.byKind.set(fault.kind, (this.byKind.get(fault.kind) ?? 0) + 1);
  }

  /** Never the last worker that serves: the recovery would be that of a start, and not of the fleet. */
  async #untilOthersServe(fault: Fault): Promise<void> {
    const { site } = this.#options;
    const struck = struckSlot(fault, site);
    if (!HURTS_WORKER.has(FAULT_KINDS[fault.kind].strikes) || struck.kind !== 'worker') return;
    while (!site.fleet.workers.some((worker) => worker !== struck && worker.serving))
      await sleep(LOOK_EVERY_MS);
  }

  /** Until there is something to be hit; not for ever, since the last requests may be through. */
  async #takeAim(fault: Fault): Promise<void> {
    const { site, witness, now } = this.#options;
    const onWorker = FAULT_KINDS[fault.kind].strikes === 'worker';
    const isPrey = (): boolean =>
      onWorker ? witness.heldBy(struckSlot(fault, site).id).length > 0 : witness.open.size > 0;
    for (const until = now() + AIM_MS; now() < until && !isPrey(); ) await sleep(LOOK_EVERY_MS);
  }

  #placesOf(fault: Fault): string[] {
    const { strikes } = FAULT_KINDS[fault.kind];
    if (strikes !== 'worker' && strikes !== 'api' && strikes !== 'process') return [strikes];
    const { name } = struckSlot(fault, this.#options.site);
    // No API is upgraded before the last worker is.
    return fault.kind === 'upgrade' ? [name, 'upgrade'] : [name];
  }
}

function describe(fault: Fault, site: Site): string {
  const { number, kind, variant, locks } = fault;
  const { strikes } = FAULT_KINDS[kind];
  const whom =
    strikes === 'worker' || strikes === 'api' || strikes === 'process'
      ? ` ${struckSlot(fault, site).name}`
      : '';
  const how = variant === '' ? '' : ` ${variant}`;
  const time = locks === 0 ? '' : ` ${((locks * site.lockMs) / 1_000).toFixed(1)} s`;
  return `fault ${number}: ${kind}${whom}${how}${time}`;
}
