/**
 * The fleet of the kill test: one worker that drives bulk jobs and runs them, Redis with an append-only file synced every
 * second, the tabular model behind a witness, and a table. A process that is killed is started again on the same place.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeTable } from '../bulk/data/table-file.js';
import { ChaosFleet } from '../chaos/fleet/chaos-fleet.js';
import type { ProcessSlot } from '../chaos/fleet/process-slot.js';
import { makeTabularModel } from '../rig/bench-models.js';
import { type BulkDesk, openBulkDesk } from '../rig/bulk-desk.js';
import type { KillTarget } from './kill-plan.js';
import { marksOf, RunWitness, witnessHarness } from './run-witness.js';

export interface KillFleetOptions {
  rows: number;
  batchRows: number;
  /** Before each run: what makes a job last long enough to be hurt. */
  waitMs: number;
  lockMs: number;
  keep: boolean;
}

const LOOK_EVERY_MS = 5;
/** Of a Redis that was killed, until it is started again: longer than a worker takes to notice. */
const REDIS_DOWN_MS = 300;
const MODELS = new URL('../../../test/models/', import.meta.url);

export class KillFleet {
  readonly fleet: ChaosFleet;
  readonly witness: RunWitness;
  readonly bulk: BulkDesk;
  readonly input: string;

  static async start({ rows, batchRows, waitMs, lockMs, keep }: KillFleetOptions): Promise<KillFleet> {
    let log = '';
    const fleet = await ChaosFleet.start({
      ...{ workers: 1, apis: 0, lockMs, keep, fsync: 'everysec' },
      workerEnv: { REMUDA_WORKER_BULK_JOBS: '1' },
      layModels: async (folder) => {
        log = join(folder, '../runs.log');
        await makeTabularModel(folder, {
          trees: 10,
          maxBatchSize: batchRows,
          more: 'warmup: []\nintra_op_threads: 1\n',
          harness: await witnessHarness(MODELS, log, waitMs),
        });
      },
    });
    try {
      const input = join(fleet.folder, 'table.parquet');
      await writeTable(input, rows);
      const bulk = await openBulkDesk(fleet.bulkPlace);
      return new KillFleet(fleet, new RunWitness(log, await marksOf(input)), bulk, input);
    } catch (error) {
      await fleet.stop();
      throw error;
    }
  }

  private constructor(fleet: ChaosFleet, witness: RunWitness, bulk: BulkDesk, input: string) {
    this.fleet = fleet;
    this.witness = witness;
    this.input = input;
    this.bulk = bulk;
  }

  get #worker(): ProcessSlot {
    return this.fleet.workers[0] as ProcessSlot;
  }

  /** kill -9, once there is one to kill; returns when what nobody else starts again is there again. */
  async kill(target: KillTarget): Promise<void> {
    switch (target) {
      case 'worker':
        await this.#worker.kill9();
        return this.fleet.restart(this.#worker);
      case 'redis':
        await this.fleet.redis.kill9();
        await sleep(REDIS_DOWN_MS);
        return this.fleet.redis.restart();
      case 'coordinator':
        return killFirst(() => this.#worker.coordinatorPids);
      case 'runner':
        return killFirst(() => this.#worker.runnerPids);
    }
  }

  async stop(): Promise<void> {
    await this.bulk.close();
    await this.fleet.stop();
  }
}

/** Of the processes that are there, or come. */
async function killFirst(pids: () => readonly number[]): Promise<void> {
  for (;;) {
    const [pid] = pids();
    if (pid !== undefined && killed(pid)) return;
    await sleep(LOOK_EVERY_MS);
  }
}

function killed(pid: number): boolean {
  try {
    process.kill(pid, 'SIGKILL');
    return true;
  } catch {
    return false;
  }
}
