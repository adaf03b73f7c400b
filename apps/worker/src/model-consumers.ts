/**
 * The consumers of this worker: three for each model and device class (one a lane) while some version of the model is
 * loaded here, and for a while after a request for one that is not has rung the doorbell. 200 idle models have none.
 *
 * A consumer that closes looks at its queue once more: what came in that moment opens it again.
 */
import type { Clock } from '@remuda/core/lifecycle/clock';
import { JobConsumer, type JobTicket, type TakenJob } from '@remuda/core/queue/job-queue';
import { LANES, type Partition } from '@remuda/core/queue/partitions';
import { queuesWithJobs } from '@remuda/core/queue/queues-with-jobs';
import type { Redis } from '@remuda/core/store/redis';
import type { DeviceClass } from '@remuda/schemas';

export interface ModelConsumersOptions {
  redis: Redis;
  keyPrefix: string;
  lockMs: number;
  clock: Clock;
  /** Whether a job of the model could run here; where not, consumers close at once and leave what waits alone. */
  mayServe(model: string, deviceClass: DeviceClass): boolean;
  handle(job: TakenJob): Promise<void>;
  onGivenUp(ticket: JobTicket, reason: string): void;
  onLockLost(requestIds: string[]): void;
  onError(error: Error): void;
}

/** What a model needs of its consumers on a device class. */
export interface ConsumerNeed {
  model: string;
  deviceClass: DeviceClass;
  /** Jobs to hold at once; 0: no version is loaded here. */
  concurrency: number;
  /** Chunks to hold at once. Default: CHUNKS_A_DEVICE. */
  chunks?: number;
}

/** One runs, of the next the rows are read. More would keep them from other workers. */
export const CHUNKS_A_DEVICE = 2;

/** Jobs held while their version is being loaded. */
const UNLOADED_CONCURRENCY = 16;
/** After this long without a job the consumers of a model that is not loaded are closed. */
const IDLE_MS = 15_000;

interface Pair {
  model: string;
  deviceClass: DeviceClass;
  consumers: JobConsumer[];
}

export class ModelConsumers {
  readonly #options: ModelConsumersOptions;
  readonly #pairs = new Map<string, Pair>();
  readonly #closing = new Map<string, Promise<void>>();
  #stopped = false;

  constructor(options: ModelConsumersOptions) {
    this.#options = options;
  }

  get all(): JobConsumer[] {
    return [...this.#pairs.values()].flatMap(({ consumers }) => consumers);
  }

  isOpen(model: string, deviceClass: DeviceClass): boolean {
    return this.#pairs.has(keyOfPair({ model, deviceClass }));
  }

  /** Opens them, where they are not; sets how many jobs they hold. */
  open({ model, deviceClass, concurrency, chunks = CHUNKS_A_DEVICE }: ConsumerNeed): void {
    if (this.#stopped) return;
    const key = keyOfPair({ model, deviceClass });
    const jobs = concurrency || UNLOADED_CONCURRENCY;
    const open = this.#pairs.get(key);
    if (open) {
      for (const [at, consumer] of open.consumers.entries())
        consumer.concurrency = LANES[at] === 'chunks' ? chunks : jobs;
      return;
    }
    const consumers = LANES.map((lane) =>
      this.#newConsumer({ model, deviceClass, lane }, lane === 'chunks' ? chunks : jobs),
    );
    this.#pairs.set(key, { model, deviceClass, consumers });
    for (const consumer of consumers) consumer.start();
  }

  /** Closes those that nobody needs and that have had no job for a while. @param needed by keyOfPair */
  closeIdle(needed: ReadonlySet<string>): void {
    for (const [key, { model, deviceClass, consumers }] of this.#pairs) {
      if (needed.has(key) || consumers.some(({ inHand }) => inHand > 0)) continue;
      const pauseMs = this.#options.mayServe(model, deviceClass) ? IDLE_MS : 0;
      const before = this.#options.clock.now() - pauseMs;
      if (consumers.some(({ lastProgressAt }) => lastProgressAt > before)) continue;
      this.#pairs.delete(key);
      const closing = this.#close(model, deviceClass, consumers).catch(this.#options.onError);
      this.#closing.set(
        key,
        closing.finally(() => this.#closing.delete(key)),
      );
    }
  }

  /** Takes up no more jobs, for good; those in hand go on. */
  async pause(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.all.map((consumer) => consumer.pause()));
  }

  async close(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.all.map((consumer) => consumer.close()), ...this.#closing.values()]);
    this.#pairs.clear();
  }

  async #close(model: string, deviceClass: DeviceClass, consumers: JobConsumer[]): Promise<void> {
    await Promise.all(consumers.map((consumer) => consumer.close()));
    const { redis, keyPrefix, mayServe } = this.#options;
    if (this.#stopped || redis.status !== 'ready' || !mayServe(model, deviceClass)) return;
    const partitions = LANES.map((lane) => ({ model, deviceClass, lane }));
    const left = await queuesWithJobs(redis, keyPrefix, partitions);
    if (left.length > 0) this.open({ model, deviceClass, concurrency: 0 });
  }

  #newConsumer(partition: Partition, concurrency: number): JobConsumer {
    return new JobConsumer({ ...this.#options, partition, concurrency });
  }
}

export function keyOfPair({ model, deviceClass }: Pick<ConsumerNeed, 'model' | 'deviceClass'>): string {
  return `${model}/${deviceClass}`;
}
