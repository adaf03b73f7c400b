/** What a run has to say: one object for programs, one table for people, and whether it is green. */
import Table from 'cli-table3';
import type { ChaosRun } from './chaos-run.js';
import type { FaultName } from './plan/fault-kinds.js';
import type { Judged } from './verdict.js';

/** What `--json` prints, and nothing else. */
export interface ChaosFigures {
  /** Carried out. */
  faults: number;
  /** Ids of the ledger. */
  accepted: number;
  /** Those that have ended, as the API says. */
  terminal: number;
  /** Those without an end, or without the right answer. */
  lost: number;
  /** Those that ended twice, whose outcome was overwritten, or which show the result of a worker that had lost them. */
  doubled: number;
  /** Writes of workers that had lost their request, which the fence refused. */
  fenced: number;
  webhooks_missing: number;
  longest_recovery_s: number;
  seed: number;
}

export interface ChaosReport {
  figures: ChaosFigures;
  byKind: Partial<Record<FaultName, number>>;
  /** Kinds that could not be carried out here, and why. */
  skipped: Partial<Record<FaultName, string>>;
  /** The longest recovery by kind of fault, in seconds. */
  recoveryByKind: Record<string, number>;
  /** Ended as failed since processes died under them too often. */
  gaveUp: number;
  webhooksAsked: number;
  forgedWebhooks: number;
  idle: { seconds: number; limit: number; id: string; worker: string };
  seconds: number;
  /** Reasons why it is red; none: it is green. */
  red: string[];
}

export interface ReportFacts {
  seed: number;
  skipped: Partial<Record<FaultName, string>>;
  idleLimitS: number;
  seconds: number;
}

/** More than this share of requests given up is no bad luck. */
const GIVEN_UP_SHARE = 0.01;
const SHOWN = 5;

export function makeReport(run: ChaosRun, judged: readonly Judged[], facts: ReportFacts): ChaosReport {
  const { seed, skipped, idleLimitS, seconds } = facts;
  const count = (which: (one: Judged) => unknown): number => judged.filter(which).length;
  const { longest } = run.idle;
  const figures: ChaosFigures = {
    faults: run.injector.count,
    accepted: judged.length,
    terminal: count(({ terminal }) => terminal),
    lost: count(({ lost }) => lost),
    doubled: count(({ doubled }) => doubled),
    fenced: run.fenced.total,
    webhooks_missing: count(({ webhookMissing }) => webhookMissing),
    longest_recovery_s: round(run.recoveries.longest.seconds),
    seed,
  };
  const report = {
    figures,
    byKind: Object.fromEntries(run.injector.byKind),
    skipped,
    recoveryByKind: Object.fromEntries([...run.recoveries.byKind].map(([kind, s]) => [kind, round(s)])),
    gaveUp: count(({ gaveUp }) => gaveUp),
    webhooksAsked: count(({ entry }) => entry.webhook !== undefined && entry.webhook !== 'gone'),
    forgedWebhooks: run.sinks.forged,
    idle: { ...longest, seconds: round(longest.seconds), limit: idleLimitS },
    seconds: round(seconds),
  };
  return { ...report, red: reasons(report, judged) };
}

function reasons(report: Omit<ChaosReport, 'red'>, judged: readonly Judged[]): string[] {
  const { figures, gaveUp, idle, forgedWebhooks } = report;
  const found: string[] = [];
  const tell = (what: string, of: (one: Judged) => string | false | undefined): void => {
    const guilty = judged.filter(of);
    if (guilty.length === 0) return;
    const shown = guilty.slice(0, SHOWN).map((one) => `${one.entry.id} (${of(one)})`);
    found.push(`${guilty.length} ${what}: ${shown.join('; ')}${guilty.length > SHOWN ? '; …' : ''}`);
  };
  tell('lost', ({ lost }) => lost);
  tell('doubled', ({ doubled }) => doubled);
  tell('webhooks missing', ({ webhookMissing, entry }) => webhookMissing && `sink ${entry.webhook}`);
  if (gaveUp > figures.accepted * GIVEN_UP_SHARE) found.push(`${gaveUp} given up, more than 1 in 100`);
  if (forgedWebhooks > 0) found.push(`${forgedWebhooks} webhooks with a wrong signature`);
  if (idle.seconds > idle.limit)
    found.push(`${idle.id} waited for ${idle.seconds} s while ${idle.worker} had nothing to do`);
  return found;
}

export function reportText(report: ChaosReport, repeat: string): string {
  const { figures, red } = report;
  const table = new Table({ head: ['what', 'figure'], style: { head: [], border: [] } });
  table.push(
    ['faults', figures.faults],
    ['accepted', figures.accepted],
    ['ended', figures.terminal],
    ['lost, or with a wrong answer', figures.lost],
    ['doubled, or with the result of a fenced run', figures.doubled],
    ['late writes that the fence refused', figures.fenced],
    ['given up: processes died under them', report.gaveUp],
    ['webhooks missing', `${figures.webhooks_missing} of ${report.webhooksAsked}`],
    ['longest recovery', `${figures.longest_recovery_s} s`],
    ['longest wait beside an idle worker', `${report.idle.seconds} s, limit ${report.idle.limit} s`],
    ['time', `${report.seconds} s`],
    ['seed', figures.seed],
  );
  return [table.toString(), kindsTable(report), `again: ${repeat}`, verdictLine(red)].join('\n');
}

function kindsTable({ byKind, recoveryByKind, skipped }: ChaosReport): string {
  const table = new Table({ head: ['fault', 'times', 'longest recovery'], style: { head: [], border: [] } });
  for (const [kind, times] of Object.entries(byKind).sort(([a], [b]) => (a < b ? -1 : 1)))
    table.push([kind, times, recoveryByKind[kind] === undefined ? '-' : `${recoveryByKind[kind]} s`]);
  for (const [kind, reason] of Object.entries(skipped)) table.push([kind, 'left out', reason]);
  return table.toString();
}

function verdictLine(red: readonly string[]): string {
  return red.length === 0 ? 'green' : `RED\n${red.map((reason) => `  ${reason}`).join('\n')}`;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
