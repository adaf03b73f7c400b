/**
 * One run of the chaos suite, put together: a fleet, who watches it, the ledger, and the verdict on it. What is done to the
 * fleet meanwhile is the caller's: run-chaos.ts carries out a plan, tests carry out single steps.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { InferenceResult } from '@remuda/schemas';
import { Injector } from './faults/injector.js';
import type { Site } from './faults/site.js';
import { ChaosFleet, type ChaosFleetOptions, KEY_PREFIX } from './fleet/chaos-fleet.js';
import { ApiClient } from './load/api-client.js';
import { LedgerFile } from './load/ledger-file.js';
import { Sinks } from './load/sinks.js';
import { type Judged, judge } from './verdict.js';
import { AofTail } from './watch/aof-tail.js';
import { Calm } from './watch/calm.js';
import { FencedWrites } from './watch/fenced-writes.js';
import { IdleWatch } from './watch/idle-watch.js';
import { Recoveries } from './watch/recovery.js';
import { Witness } from './watch/witness.js';

export interface ChaosRunOptions extends ChaosFleetOptions {
  say?(line: string): void;
}

/** Results asked for at once. */
const ASKED_AT_ONCE = 24;
const LOOK_EVERY_MS = 100;

export class ChaosRun {
  readonly fleet: ChaosFleet;
  readonly witness: Witness;
  readonly ledger: LedgerFile;
  readonly client = new ApiClient();
  readonly sinks: Sinks;
  readonly calm = new Calm(Date.now);
  readonly recoveries: Recoveries;
  readonly idle: IdleWatch;
  readonly injector: Injector;
  readonly fenced: FencedWrites;
  readonly #tail: AofTail;
  /** Of the suite's own making: then nothing that it says counts. */
  failure: Error | undefined;

  static async start(options: ChaosRunOptions): Promise<ChaosRun> {
    const sinks = new Sinks();
    await sinks.start();
    try {
      return new ChaosRun(await ChaosFleet.start(options), sinks, options);
    } catch (error) {
      await sinks.stop();
      throw error;
    }
  }

  private constructor(fleet: ChaosFleet, sinks: Sinks, { lockMs, say = () => {} }: ChaosRunOptions) {
    this.fleet = fleet;
    this.sinks = sinks;
    const folder = join(fleet.folder, 'ledger');
    mkdirSync(folder);
    this.ledger = new LedgerFile(join(folder, 'accepted.jsonl'));
    this.witness = new Witness({
      keyPrefix: KEY_PREFIX,
      now: Date.now,
      onEnd: (id) => this.recoveries.ended(id),
    });
    this.recoveries = new Recoveries(this.witness, Date.now);
    this.#tail = new AofTail(fleet.redisFolder, this.witness, (error) => {
      this.failure = error;
    });
    fleet.redis.onRestart = () => this.#tail.restarted();
    this.#tail.start();
    this.idle = new IdleWatch(fleet, this.witness, this.calm);
    this.idle.start();
    this.fenced = new FencedWrites(fleet);
    this.fenced.start();
    const { ledger, calm } = this;
    const site: Site = { fleet, calm, lockMs, ledger, sinks };
    this.injector = new Injector({
      site,
      witness: this.witness,
      recoveries: this.recoveries,
      now: Date.now,
      say,
    });
  }

  /** Waits until every id of the ledger has ended and was told; gives up when for so long nothing has changed. */
  async settle(patienceMs: number): Promise<void> {
    const entries = this.ledger.read();
    let [missing, since] = [Number.POSITIVE_INFINITY, Date.now()];
    for (;;) {
      this.#throwIfFailed();
      const left = entries.filter(
        ({ id, webhook }) =>
          !this.#hasEnded(id) ||
          (webhook !== undefined && webhook !== 'gone' && !this.sinks.delivered.has(id)),
      ).length;
      if (left === 0) return;
      if (left < missing) [missing, since] = [left, Date.now()];
      if (Date.now() - since > patienceMs) return;
      await sleep(LOOK_EVERY_MS);
    }
  }

  /** What became of each id of the ledger. */
  async judgeAll(): Promise<Judged[]> {
    this.idle.stop();
    await this.fenced.look();
    this.#tail.read();
    this.#throwIfFailed();
    const entries = this.ledger.read();
    const judged: Judged[] = [];
    for (let from = 0; from < entries.length; from += ASKED_AT_ONCE) {
      const some = entries.slice(from, from + ASKED_AT_ONCE);
      const results = await Promise.all(some.map(({ id }) => this.#resultOf(id)));
      some.forEach((entry, i) => {
        const witnessed = this.witness.requests.get(entry.id);
        const delivered = this.sinks.delivered.get(entry.id) ?? 0;
        judged.push(judge(entry, { witnessed, result: results[i] ?? null, delivered }));
      });
    }
    return judged;
  }

  async stop(): Promise<void> {
    this.idle.stop();
    this.fenced.stop();
    this.#tail.stop();
    await this.client.close();
    await this.fleet.stop();
    await this.sinks.stop();
  }

  #hasEnded(id: string): boolean {
    return this.witness.requests.get(id)?.endedAt != null;
  }

  /** As whoever sent it would ask; another API where one does not answer. */
  async #resultOf(id: string): Promise<InferenceResult | null> {
    const { apis } = this.fleet;
    for (let attempt = 0; attempt < 20; attempt++) {
      const slot = apis[attempt % apis.length] as (typeof apis)[number];
      const answer = await this.client.call(slot, 'GET', `/v1/requests/${id}/result`);
      if (answer?.status === 200) return answer.body as InferenceResult;
      if (answer?.status === 202 || answer?.status === 404) return null;
      await sleep(LOOK_EVERY_MS);
    }
    throw new Error(`no API answers about request ${id}`);
  }

  #throwIfFailed(): void {
    if (this.failure) throw this.failure;
  }
}
