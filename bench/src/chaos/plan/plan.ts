/**
 * From a seed to a plan of faults: which, whom they strike, for how long, and after how many offered requests. Pure:
 * the same question gives the same plan. Kinds are dealt like cards, so that each comes as often as its weight says,
 * and a plan of at least as many faults as there are cards has every kind.
 */
import { FAULT_KINDS, FAULT_NAMES, type FaultKind, type FaultName } from './fault-kinds.js';
import { Random } from './random.js';

export interface PlanQuestion {
  seed: number;
  faults: number;
  /** Requests that are offered over the run. */
  ids: number;
  workers: number;
  apis: number;
  /** Kinds to draw from; default all. `upgrade` is not drawn: see `upgrades`. */
  kinds?: readonly FaultName[];
  /** Processes of an older build to replace: spread over the first part of the run, since it is this build that is tried. */
  upgrades?: number;
}

export interface Fault {
  /** From 1 on. */
  number: number;
  kind: FaultName;
  /** It comes when so many requests have been offered. */
  at: number;
  /** Number of the worker, API or other process that it strikes, from 0 on; 0 where there is nothing to choose. */
  target: number;
  /** In lock times; 0: over at once. */
  locks: number;
  variant: string;
  /** The next fault does not wait for the end of this one. */
  together: boolean;
}

/** Share of the requests that are offered before the first fault and behind the last. */
const QUIET_SHARE = 0.04;
const TOGETHER_SHARE = 0.15;
/** Part of the faults after which no process of an older build is left. */
const UPGRADE_SHARE = 0.3;

export function makePlan(question: PlanQuestion): Fault[] {
  const { seed, faults, ids, kinds = FAULT_NAMES, upgrades = 0 } = question;
  const random = new Random(seed);
  const drawn = kinds.filter((kind) => kind !== 'upgrade');
  const names = withUpgrades(deal(random, drawn, faults), upgrades);
  const [first, last] = [ids * QUIET_SHARE, ids * (1 - QUIET_SHARE)];
  const step = (last - first) / Math.max(1, faults);
  let upgraded = 0;
  return names.map((kind, index) => {
    const { strikes, locks = [0, 0], variants = [''], lingers = false } = FAULT_KINDS[kind] as FaultKind;
    return {
      number: index + 1,
      kind,
      at: Math.round(first + step * (index + random.next())),
      // One after the other, workers first.
      target: kind === 'upgrade' ? upgraded++ : random.whole(0, targets(strikes, question) - 1),
      locks: Math.round((locks[0] + random.next() * (locks[1] - locks[0])) * 100) / 100,
      variant: random.pick(variants),
      together: random.chance(TOGETHER_SHARE) || lingers,
    };
  });
}

function deal(random: Random, kinds: readonly FaultName[], count: number): FaultName[] {
  if (kinds.length === 0) return [];
  const pack = kinds.flatMap((kind) => Array.from({ length: FAULT_KINDS[kind].weight ?? 1 }, () => kind));
  // Each kind once before any comes twice: a short plan has as many kinds as it can.
  const dealt = random.shuffled(kinds);
  while (dealt.length < count) dealt.push(...random.shuffled(pack));
  return dealt.slice(0, count);
}

function withUpgrades(names: readonly FaultName[], upgrades: number): FaultName[] {
  const spread = [...names];
  const span = Math.max(upgrades, Math.floor(names.length * UPGRADE_SHARE));
  for (let i = 0; i < Math.min(upgrades, names.length); i++)
    spread[Math.floor(((i + 0.5) * span) / upgrades)] = 'upgrade';
  return spread;
}

function targets(strikes: FaultKind['strikes'], { workers, apis }: PlanQuestion): number {
  if (strikes === 'worker') return workers;
  if (strikes === 'api') return apis;
  return strikes === 'process' ? workers + apis : 1;
}
