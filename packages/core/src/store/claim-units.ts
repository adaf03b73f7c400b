/**
 * The first step of a batch in a runner: may each unit be run, and on which input? Claim and inputs are asked for at
 * once, one wait; an input that may not be run was fetched in vain, which is rare, and a second wait would not be.
 */
import type { BatchUnit } from '../inference/runner-protocol.js';
import type { Keys } from './keys.js';
import type { Payload } from './mget-replies.js';
import type { Claim, TimeLimits } from './outcome.js';
import { callScript, type Redis } from './redis.js';

/** Where inputs are read. PayloadReader is one. */
export interface PayloadSource {
  read(keys: readonly string[]): Promise<(Payload | null)[]>;
  release(payload: Payload | null): void;
}

/** Reads by an ordinary connection; memory is the garbage collector's. */
export function ordinarySource(redis: Redis): PayloadSource {
  return {
    read: async (keys) =>
      (await redis.mgetBuffer(...keys)).map((bytes) => bytes && { bytes, memory: undefined }),
    release: () => {},
  };
}

/** What was claimed of a request: the verdict, and its input where that lies in the record. */
interface ClaimedRequest {
  verdict: string;
  inline: Buffer;
  limits: TimeLimits | undefined;
}

/** Who asks, and whether the items have begun to run in this attempt: then the deadline to start is met. */
export interface Claimant {
  workerId: string;
  begun: boolean;
}

/** Marks the requests as running. */
export async function claimAndFetch(
  units: readonly BatchUnit[],
  claimant: Claimant,
  { redis, keys, payloads }: { redis: Redis; keys: Keys; payloads: PayloadSource },
): Promise<Claim[]> {
  const [claimed, fetched] = await Promise.allSettled([
    claimRequests(units, claimant, redis, keys),
    fetchPayloads(units, keys, payloads),
  ]);
  if (claimed.status === 'rejected' || fetched.status === 'rejected') {
    if (fetched.status === 'fulfilled')
      for (const payload of fetched.value.values()) payloads.release(payload);
    throw claimed.status === 'rejected' ? claimed.reason : (fetched as PromiseRejectedResult).reason;
  }
  return units.map((unit): Claim => {
    const { verdict, inline, limits } = claimed.value.get(unit.requestId) as ClaimedRequest;
    const payload = unit.inline ? { bytes: inline, memory: undefined } : fetched.value.get(unit);
    if (verdict === 'run' && payload && payload.bytes.length > 0)
      return { verdict, payload: payload.bytes, memory: payload.memory, limits };
    payloads.release(payload ?? null);
    return { verdict: verdict === 'run' ? 'payload_missing' : verdict } as Claim;
  });
}

async function claimRequests(
  units: readonly BatchUnit[],
  { workerId, begun }: Claimant,
  redis: Redis,
  keys: Keys,
): Promise<Map<string, ClaimedRequest>> {
  const requests = [...new Map(units.map((unit) => [unit.requestId, unit])).values()];
  const claimed = new Map<string, ClaimedRequest>();
  const claimShard = async (members: readonly BatchUnit[]): Promise<void> => {
    const reply = (await callScript(
      redis,
      'claimRequests',
      members.map((unit) => keys.record(unit.requestId)),
      [workerId, begun ? '1' : '', ...members.flatMap((unit) => [unit.token, unit.nonce])],
      true,
    )) as Buffer[];
    const at = performance.now();
    members.forEach(({ requestId }, i) => {
      const verdict = (reply[2 * i] as Buffer).toString('latin1');
      claimed.set(requestId, { ...readVerdict(verdict, at), inline: reply[2 * i + 1] as Buffer });
    });
  };
  await Promise.all(keys.byShard(requests, (unit) => unit.requestId).map(claimShard));
  return claimed;
}

/** What is left of a deadline came from Redis, so that the clock of this host does not matter. @param at by performance.now */
function readVerdict(text: string, at: number): Pick<ClaimedRequest, 'verdict' | 'limits'> {
  if (text === 'run') return { verdict: text, limits: undefined };
  const [verdict, first, finish] = text.split(' ');
  if (verdict === 'expired') return { verdict: `expired_${first}`, limits: undefined };
  if (verdict !== 'run') return { verdict: text, limits: undefined };
  const limit = (left: string | undefined): number =>
    left === undefined || left === '-' ? Number.POSITIVE_INFINITY : at + Number(left);
  return { verdict, limits: { startBy: limit(first), finishBy: limit(finish) } };
}

async function fetchPayloads(
  units: readonly BatchUnit[],
  keys: Keys,
  payloads: PayloadSource,
): Promise<Map<BatchUnit, Payload | null>> {
  const stored = units.filter((unit) => !unit.inline);
  const fetched = new Map<BatchUnit, Payload | null>();
  const fetchShard = async (members: readonly BatchUnit[]): Promise<void> => {
    const values = await payloads.read(
      members.map((unit) => keys.payload(unit.requestId, unit.nonce, unit.item)),
    );
    members.forEach((unit, i) => {
      fetched.set(unit, values[i] ?? null);
    });
  };
  await Promise.all(keys.byShard(stored, (unit) => unit.requestId).map(fetchShard));
  return fetched;
}
