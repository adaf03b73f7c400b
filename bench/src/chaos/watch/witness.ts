/**
 * What really happened to each request, told by the append-only file of Redis and not by the records that are to be
 * judged: every write that took effect stands in it once, in order, also those before a crash of Redis. So an end that
 * came twice shows, and an outcome that was written by a worker which had lost the request.
 *
 * Field by field what is written: packages/core/src/store/scripts.
 */
import type { AofCommand } from './aof-parser.js';

export interface WitnessedOutcome {
  /** The worker that ran it; null: it was not run (an error of the worker itself, a deadline). */
  writer: string | null;
  /** The worker that held the request at that moment. */
  holder: string | null;
}

export interface WitnessedRequest {
  status: string;
  /** The worker that has taken it up last. */
  holder: string | null;
  /** Each terminal status that was written, in order; more than one is a doubling. */
  ends: string[];
  outcomes: Map<number, WitnessedOutcome>;
  /** Outcomes that were written over another, or behind the end. */
  rewritten: number;
  /** By our own clock, milliseconds. */
  seenAt: number;
  endedAt: number | null;
}

const ENDS = new Set(['succeeded', 'partial', 'failed', 'cancelled', 'expired']);
/** Where an outcome frame has what ran it: in the header, which comes first. */
const HEADER_BYTES = 4_096;

export interface WitnessOptions {
  keyPrefix: string;
  now(): number;
  onEnd?(id: string): void;
}

export class Witness {
  readonly #options: WitnessOptions;
  readonly #record: RegExp;
  readonly requests = new Map<string, WitnessedRequest>();
  /** Those that have not ended. */
  readonly open = new Set<string>();

  constructor(options: WitnessOptions) {
    this.#options = options;
    this.#record = new RegExp(`^${options.keyPrefix}:\\{r\\d+\\}:q:(.+)$`);
  }

  see(commands: readonly AofCommand[]): void {
    for (const command of commands) this.#seeOne(command);
  }

  /** Not ended, and held by that worker. */
  heldBy(worker: string): string[] {
    return [...this.open].filter((id) => {
      const request = this.requests.get(id);
      return request?.holder === worker && request.status === 'running';
    });
  }

  #seeOne(command: AofCommand): void {
    const name = (command[0] as Buffer).toString('latin1').toUpperCase();
    if (name === 'DEL' || name === 'UNLINK') this.#forget(command);
    else if (name === 'HSET' || name === 'HMSET' || name === 'HSETNX') this.#write(command);
  }

  #write(command: AofCommand): void {
    const id = this.#idOf(command[1]);
    if (id === undefined) return;
    const request = this.#requestOf(id);
    // The holder first: an outcome that ends a request before any run comes with the token of who wrote it.
    for (let i = 2; i + 1 < command.length; i += 2)
      this.#field(id, request, (command[i] as Buffer).toString('latin1'), command[i + 1] as Buffer);
  }

  #field(id: string, request: WitnessedRequest, field: string, value: Buffer): void {
    if (field === 'w') request.holder = value.toString('latin1');
    else if (field === 's') this.#status(id, request, value.toString('latin1'));
    else if (field.startsWith('o:')) outcome(request, Number(field.slice(2)), value);
  }

  #status(id: string, request: WitnessedRequest, status: string): void {
    if (ENDS.has(status)) {
      request.ends.push(status);
      request.endedAt ??= this.#options.now();
      this.open.delete(id);
      if (request.ends.length === 1) this.#options.onEnd?.(id);
    } else if (request.ends.length > 0) request.ends.push(status);
    request.status = status;
  }

  #requestOf(id: string): WitnessedRequest {
    let request = this.requests.get(id);
    if (!request) {
      const seenAt = this.#options.now();
      request = {
        ...{ status: 'queued', holder: null, ends: [], outcomes: new Map(), rewritten: 0 },
        ...{ seenAt, endedAt: null },
      };
      this.requests.set(id, request);
      this.open.add(id);
    }
    return request;
  }

  /** Taken back, or its time has passed: what comes under this id afterwards is another request. */
  #forget(command: AofCommand): void {
    for (const key of command.slice(1)) {
      const id = this.#idOf(key);
      if (id === undefined) continue;
      this.requests.delete(id);
      this.open.delete(id);
    }
  }

  #idOf(key: Buffer | undefined): string | undefined {
    return key && this.#record.exec(key.toString('latin1'))?.[1];
  }
}

function outcome(request: WitnessedRequest, item: number, frame: Buffer): void {
  if (request.outcomes.has(item) || request.ends.length > 0) request.rewritten++;
  const header = frame.toString('latin1', 0, Math.min(HEADER_BYTES, frame.length));
  const writer = /"worker_id":"([^"]+)"/.exec(header)?.[1] ?? null;
  request.outcomes.set(item, { writer, holder: request.holder });
}

/** Who wrote an outcome of it after having lost it to whom; null: nobody. */
export function showsFenced({ outcomes }: WitnessedRequest): { writer: string; holder: string } | null {
  // Without a holder nobody has run it: its deadline had passed.
  for (const { writer, holder } of outcomes.values())
    if (writer !== null && holder !== null && writer !== holder) return { writer, holder };
  return null;
}
