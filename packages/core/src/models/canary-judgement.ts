/**
 * Whether a canary is worse than the stable version, by the rule of the split. Pure.
 *
 * The rule's margins alone would take back many an equal canary: after 200 requests each with 1 % of errors, a
 * difference of 2 points is two standard deviations, and it is looked for twice a second. So the difference must be
 * above the margin by three standard deviations of chance and more, the longer it has been looked for. What that costs
 * is some patience with a canary that is only a little worse than allowed. docs/canary-and-shadow.md has the figures.
 */
import type { RollbackRule } from '@remuda/schemas';
import { countAbove, type Histogram, quantileOf, totalOf } from './run-time-histogram.js';

/** What is known of one version since the split began. */
export interface SideCounts {
  ok: number;
  /** Errors of the model or of what runs it. */
  modelErrors: number;
  /** Errors that lie in what was sent; they count for nothing. */
  inputErrors: number;
  /** Runners that it has killed or hung, and nothing else can have. */
  killed: number;
  /** Time of each native run. Of runs, not of items: the items of one batch share their time. */
  runs: Histogram;
}

export interface JudgementFigures {
  requests: { stable: number; canary: number };
  error_rate: { stable: number; canary: number };
  /** Seconds; null where nothing has run. */
  run_p95_s: { stable: number | null; canary: number | null };
}

export interface Judgement extends JudgementFigures {
  verdict: 'too_few' | 'not_worse' | 'worse';
  /** What it is worse in. */
  by: 'errors' | 'latency' | 'crashes' | null;
}

/** Standard deviations by which a difference must be above what is allowed, at the first look. */
const CERTAINTY = 3;
/**
 * So many runners lost to a canary, and so much oftener than to the stable version, end it whatever has been counted: each
 * loss holds up every model of the runner, and what ends a process is slow to be counted as an error. One poisonous input
 * costs two or three, until it stands alone.
 */
const MOST_KILLED = { runners: 8, times: 3 };

export function judgeCanary(stable: SideCounts, canary: SideCounts, rule: RollbackRule): Judgement {
  const figures = figuresOf(stable, canary);
  const { requests } = figures;
  if (killsRunners(stable, canary)) return { verdict: 'worse', by: 'crashes', ...figures };
  if (Math.min(requests.stable, requests.canary) < rule.min_requests) {
    return { verdict: 'too_few', by: null, ...figures };
  }
  if (hasMoreErrors(stable, canary, rule)) return { verdict: 'worse', by: 'errors', ...figures };
  if (isSlower(stable, canary, rule)) return { verdict: 'worse', by: 'latency', ...figures };
  return { verdict: 'not_worse', by: null, ...figures };
}

function killsRunners(stable: SideCounts, canary: SideCounts): boolean {
  if (canary.killed < MOST_KILLED.runners) return false;
  const rateOf = (side: SideCounts): number => side.killed / Math.max(1, judgedOf(side) + side.killed);
  return rateOf(canary) > MOST_KILLED.times * rateOf(stable);
}

/** Requests that say something about the version. */
export function judgedOf({ ok, modelErrors }: SideCounts): number {
  return ok + modelErrors;
}

export function errorRateOf(side: SideCounts): number {
  return side.modelErrors / Math.max(1, judgedOf(side));
}

function figuresOf(stable: SideCounts, canary: SideCounts): JudgementFigures {
  const both = <T>(of: (side: SideCounts) => T) => ({ stable: of(stable), canary: of(canary) });
  return {
    requests: both(judgedOf),
    error_rate: both(errorRateOf),
    run_p95_s: both(({ runs }) => quantileOf(runs, 0.95)),
  };
}

function hasMoreErrors(stable: SideCounts, canary: SideCounts, rule: RollbackRule): boolean {
  const excess = errorRateOf(canary) - errorRateOf(stable) - rule.max_error_rate_increase;
  if (excess <= 0) return false;
  const [n, m] = [judgedOf(stable), judgedOf(canary)];
  const pooled = (stable.modelErrors + canary.modelErrors) / (n + m);
  const certainty = certaintyAfter(Math.min(n, m), rule);
  // Few errors scatter upwards more than downwards: the same certainty takes so many more of them.
  const skew = (certainty ** 2 - 1) / 6 / m;
  return excess >= certainty * deviation(pooled, n, m) + skew;
}

/** Were its p95 no more than the allowed multiple, at most 5 % of its runs would be above that. */
function isSlower(stable: SideCounts, canary: SideCounts, rule: RollbackRule): boolean {
  const p95 = quantileOf(stable.runs, 0.95);
  if (p95 === null || canary.runs.size === 0) return false;
  const limit = p95 * rule.max_p95_ratio;
  if ((quantileOf(canary.runs, 0.95) as number) <= limit) return false;
  const [n, m] = [totalOf(stable.runs), totalOf(canary.runs)];
  const above = countAbove(canary.runs, limit) / m;
  const certainty = certaintyAfter(Math.min(n, m), rule);
  const skew = (certainty ** 2 - 1) / 6 / m;
  return above - 0.05 >= certainty * deviation(0.05, n, m) + skew;
}

/**
 * Who looks again and again sees any bound of a fixed height passed at last. One that grows with the logarithm of what
 * was seen is passed by chance hardly more often after a day than after the first look.
 */
function certaintyAfter(seen: number, { min_requests }: RollbackRule): number {
  return Math.sqrt(CERTAINTY ** 2 + Math.log(Math.max(1, seen / min_requests)));
}

/** Of the difference of two shares that are both `share`, out of n and m. */
function deviation(share: number, n: number, m: number): number {
  return Math.sqrt(share * (1 - share) * (1 / n + 1 / m));
}
