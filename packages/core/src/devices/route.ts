/**
 * Decides to which device class a request goes: among the classes that its model allows and that are live, the one that
 * is expected to be done first. Pure: the facts come from the last view of the fleet and of the queues. The Route, with
 * what was known of each candidate, is recorded on the request; queue/partitions.ts makes a queue of it.
 *
 *   expected = rows ahead × seconds per row of the class + the time of its own rows; within 5 % the preferred wins
 */
import type { DeviceClass, Lane, Route, RouteCandidate } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import type { ClassFacts } from '../fleet/class-index.js';

export interface RouteFacts {
  /** The class that the request asks for. */
  requested?: string;
  /** Classes that the model allows, best first; at least one. */
  affinity: readonly string[];
  lane: Lane;
  /** Of the request. */
  rows: number;
  /** What the fleet offers for the version. */
  classes: readonly ClassFacts[];
  /** Rows that wait in the queues before this request on a class. */
  queuedRows(deviceClass: DeviceClass): number;
  /** Age of the oldest of these facts. */
  ageMs: number;
}

/** Expected times this close together are equal: they are not known better. */
const TIE = 1.05;
/** A class that was never measured and is not preferred is taken for that much slower than the preferred one. */
const UNMEASURED_FACTOR = 10;

interface Candidate extends RouteCandidate {
  facts: ClassFacts | undefined;
}

/** @throws RemudaError device_not_allowed */
export function routeRequest(facts: RouteFacts): Route {
  const { requested, affinity, lane, ageMs } = facts;
  const classes = requested === undefined ? affinity : [allowed(requested, affinity)];
  const candidates = classes.map((deviceClass) => candidateOf(deviceClass, facts));
  const { chosen, reasons } = choose(candidates, facts);
  chosen.verdict = 'chosen';
  return {
    device_class: chosen.device_class,
    lane,
    reasons: [ruleText(facts), ...reasons],
    candidates: candidates.map(({ facts: _, ...candidate }) => candidate),
    ...(Number.isFinite(ageMs) ? { facts_age_ms: Math.max(0, Math.round(ageMs)) } : {}),
    ...(requested === undefined ? {} : { requested }),
  };
}

function allowed(requested: string, affinity: readonly string[]): string {
  if (affinity.includes(requested)) return requested;
  throw new RemudaError(
    'device_not_allowed',
    `the model does not run on ${requested}; its rules allow ${affinity.join(', ')}`,
    { requested, allowed: [...affinity] },
  );
}

function ruleText({ requested, affinity }: RouteFacts): string {
  if (requested !== undefined) return `the request asks for ${requested}, which the model allows`;
  return affinity.length === 1
    ? `the model allows ${affinity[0]} only`
    : `the model prefers ${affinity.join(', then ')}`;
}

function candidateOf(deviceClass: string, { classes, queuedRows }: RouteFacts): Candidate {
  const facts = classes.find((candidate) => candidate.deviceClass === deviceClass);
  return {
    device_class: deviceClass,
    workers: facts ? facts.ready + facts.coming : 0,
    instances: facts?.instances ?? 0,
    rows_ahead: facts ? facts.rowsInHand + queuedRows(facts.deviceClass) : 0,
    seconds_per_row: facts?.secondsPerRow == null ? null : rounded(facts.secondsPerRow, 6),
    expected_s: null,
    verdict: 'comes after the one chosen',
    facts,
  };
}

interface Choice {
  chosen: Candidate;
  reasons: string[];
}

/** Ready goes before still to be loaded, that before broken, that before nobody. */
function choose(candidates: readonly Candidate[], facts: RouteFacts): Choice {
  for (const candidate of candidates) candidate.verdict = absence(candidate) ?? candidate.verdict;
  const ready = candidates.filter((candidate) => (candidate.facts?.ready ?? 0) > 0);
  if (ready.length > 0) return chooseReady(ready, candidates, facts);
  const coming = candidates.find((candidate) => (candidate.facts?.coming ?? 0) > 0);
  if (coming) {
    return {
      chosen: coming,
      reasons: [...passedOver(coming, candidates), `it is loaded on ${coming.device_class} first`],
    };
  }
  const broken = candidates.find((candidate) => (candidate.facts?.broken ?? 0) > 0);
  if (broken) {
    const reason = `its runs keep failing on ${broken.device_class}: the request waits there until they do not`;
    return { chosen: broken, reasons: [reason] };
  }
  const first = candidates[0] as Candidate;
  const which = facts.requested === undefined && candidates.length > 1 ? ', the first choice' : '';
  return {
    chosen: first,
    reasons: [`no live worker has the model: the request waits for one on ${first.device_class}${which}`],
  };
}

/** Why a class cannot take it now; undefined: it can. */
function absence({ device_class, facts }: Candidate): string | undefined {
  if (!facts || facts.ready + facts.coming + facts.broken === 0)
    return `no live worker has it on ${device_class}`;
  if (facts.ready > 0) return undefined;
  return facts.coming > 0
    ? `no worker has it ready on ${device_class} yet`
    : `its runs keep failing on ${device_class}`;
}

function chooseReady(ready: readonly Candidate[], all: readonly Candidate[], { rows }: RouteFacts): Choice {
  const preferred = ready[0] as Candidate;
  estimate(ready, preferred, rows);
  const reasons = passedOver(preferred, all);
  const live = `a live worker has it on ${preferred.device_class}`;
  if (preferred.expected_s === null || ready.length === 1) {
    if (ready.length > 1)
      reasons.push(`${preferred.device_class} is not measured yet: by order of preference`);
    return { chosen: preferred, reasons: [...reasons, live] };
  }
  const least = Math.min(...ready.map(({ expected_s }) => expected_s as number));
  const chosen = ready.find(({ expected_s }) => (expected_s as number) <= least * TIE) as Candidate;
  for (const other of ready) {
    if (other !== chosen) other.verdict = `expected later: ${seconds(other)} against ${seconds(chosen)}`;
  }
  reasons.push(
    chosen === preferred
      ? live
      : `${preferred.device_class} would take ${seconds(preferred)}, ${chosen.device_class} ${seconds(chosen)}`,
  );
  return { chosen, reasons };
}

/** Fills in expected_s; all stay null where the preferred class itself is not measured. */
function estimate(ready: readonly Candidate[], preferred: Candidate, rows: number): void {
  const known = preferred.facts as ClassFacts;
  if (known.secondsPerRow === null) return;
  for (const candidate of ready) {
    const { ready: devices, secondsPerRow, deviceSecondsPerRow, runSeconds } = candidate.facts as ClassFacts;
    const own = deviceSecondsPerRow ?? (known.deviceSecondsPerRow as number) * UNMEASURED_FACTOR;
    const run = Math.max(runSeconds ?? 0, rows * own);
    candidate.expected_s = rounded(candidate.rows_ahead * (secondsPerRow ?? own / devices) + run);
  }
}

function passedOver(chosen: Candidate, all: readonly Candidate[]): string[] {
  const before = all.slice(0, all.indexOf(chosen));
  const absent = before.filter(({ facts }) => !facts || facts.ready + facts.coming + facts.broken === 0);
  const others = before.filter((candidate) => !absent.includes(candidate));
  return [
    ...(absent.length > 0
      ? [`no live worker has it on ${absent.map(({ device_class }) => device_class).join(' or ')}`]
      : []),
    ...others.map(({ verdict }) => verdict),
  ];
}

function seconds({ expected_s, seconds_per_row }: Candidate): string {
  return `${expected_s} s${seconds_per_row === null ? ' (not measured, taken for slow)' : ''}`;
}

function rounded(value: number, digits = 4): number {
  const unit = 10 ** digits;
  return Math.round(value * unit) / unit;
}
