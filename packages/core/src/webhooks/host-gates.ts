/**
 * Keeps one host from holding up the others: each host and port may have so many attempts at once, fewer while its last
 * one failed, and none but a probe while its breaker is open. Who is not let in is told when to come again; that is not
 * an attempt. Those who come again are spread along the time that the host takes, so that thousands of deliveries to a
 * slow host cost a look each as often as they have a chance. Pure; time is passed in. One for each worker.
 */
import { Breaker } from '../models/breaker.js';

export interface HostGatesOptions {
  /** Attempts at once to a host. Default 8. */
  atOnce?: number;
  /** While the last attempt failed. Default 2. */
  atOnceInDoubt?: number;
  /** Failures in a row that open the breaker. Default 5. */
  failures?: number;
  /** First pause of the breaker; twice as long after each probe that fails, up to `maxPauseMs`. Default 5,000. */
  pauseMs?: number;
  /** Default 60,000. */
  maxPauseMs?: number;
}

const DEFAULTS = { atOnce: 8, atOnceInDoubt: 2, failures: 5, pauseMs: 5_000, maxPauseMs: 60_000 };

export type Entry =
  | {
      entered: true;
      /** @param good whether the host is well; null: the attempt was cut off and says nothing */
      leave(good: boolean | null, ms: number): void;
    }
  | { entered: false; reason: 'busy' | 'breaker'; againMs: number };

interface Host {
  breaker: Breaker;
  /** When each attempt under way began, the oldest first. */
  inside: Set<{ begunAt: number }>;
  inDoubt: boolean;
  /** Mean time of an attempt. */
  meanMs: number;
  /** Until when the turns of those who were put off are given out. */
  turnsUntil: number;
  lastAt: number;
}

/** Too little costs a look more, too much leaves a host idle: so it is taken for fast until it shows. */
const FIRST_GUESS_MS = 10;
/** Weight of the newest attempt in the mean. */
const NEWEST = 0.2;
const LEAST_AGAIN_MS = 50;
const MOST_AGAIN_MS = 60_000;
/** Hosts that nothing was sent to for this long are forgotten, once there are many. */
const FORGET_MS = 600_000;
const MANY = 1_000;

export class HostGates {
  readonly #options: typeof DEFAULTS;
  readonly #hosts = new Map<string, Host>();

  constructor(options: HostGatesOptions = {}) {
    this.#options = { ...DEFAULTS, ...options };
  }

  /**
   * @param host with its port
   * @param random from 0 to below 1
   */
  enter(host: string, now: number, random: number): Entry {
    const gate = this.#gateOf(host, now);
    gate.lastAt = now;
    const { atOnce, atOnceInDoubt } = this.#options;
    const state = gate.breaker.state(now);
    if (state === 'open' || (state === 'half_open' && gate.inside.size > 0)) {
      const pause = Math.max(gate.breaker.retryAfterMs(now), gate.meanMs);
      return { entered: false, reason: 'breaker', againMs: Math.round(pause * (1 + random)) };
    }
    const most = gate.inDoubt ? atOnceInDoubt : atOnce;
    if (gate.inside.size >= most) {
      return { entered: false, reason: 'busy', againMs: turnOf(gate, most, now, random) };
    }
    const attempt = { begunAt: now };
    gate.inside.add(attempt);
    return {
      entered: true,
      leave: (good, ms) => {
        gate.inside.delete(attempt);
        if (good === null) return;
        gate.inDoubt = !good;
        gate.meanMs += NEWEST * (ms - gate.meanMs);
        gate.breaker.record(good ? 'good' : 'bad', now + ms);
      },
    };
  }

  /** Hosts whose breaker is not closed. */
  notClosed(now: number): number {
    let count = 0;
    for (const { breaker } of this.#hosts.values()) if (breaker.state(now) !== 'closed') count++;
    return count;
  }

  #gateOf(host: string, now: number): Host {
    const known = this.#hosts.get(host);
    if (known) return known;
    if (this.#hosts.size >= MANY) this.#forget(now);
    const { failures, pauseMs, maxPauseMs } = this.#options;
    const gate: Host = {
      breaker: new Breaker({ failures, pauseMs, maxPauseMs }),
      inside: new Set(),
      inDoubt: false,
      meanMs: FIRST_GUESS_MS,
      turnsUntil: 0,
      lastAt: now,
    };
    this.#hosts.set(host, gate);
    return gate;
  }

  #forget(now: number): void {
    for (const [host, { inside, lastAt }] of this.#hosts) {
      if (inside.size === 0 && now - lastAt > FORGET_MS) this.#hosts.delete(host);
    }
  }
}

/** Each who is put off gets the next turn: as far behind the one before as the host takes for a delivery. */
function turnOf(gate: Host, atOnce: number, now: number, random: number): number {
  // A host that hangs has not shown its time yet: as long as its oldest attempt has lasted, it takes at least.
  const [oldest] = gate.inside;
  const each = Math.max(gate.meanMs, now - (oldest?.begunAt ?? now)) / atOnce;
  gate.turnsUntil = Math.min(Math.max(gate.turnsUntil, now) + each, now + MOST_AGAIN_MS);
  const wait = Math.max(LEAST_AGAIN_MS, gate.turnsUntil - now);
  return Math.round(wait * (1 + random / 2));
}
