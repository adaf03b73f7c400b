/** What the admin API has counted of a split and of a shadow, in lines. Its reports are open records: what is not there is left out. */
import type { AdminModel } from '@remuda/schemas';
import * as z from 'zod';
import { milliseconds, percent, plural } from '../terminal/figures.js';

const Seconds = z.number().nullable().optional();

const SplitReport = z.object({
  sides: z.array(
    z.object({
      ref: z.string(),
      version: z.string().nullable(),
      requests: z.number(),
      error_rate: z.number(),
      run_p95_s: Seconds,
    }),
  ),
  judgements: z.record(z.string(), z.object({ verdict: z.string() })).default({}),
});

const ShadowReport = z.object({
  version: z.string(),
  compared: z.number(),
  shadow_errors: z.number(),
  outputs: z
    .array(z.object({ output: z.string(), max_abs_error: z.number(), changed_top1: z.number().nullable() }))
    .default([]),
});

const VERDICTS: Readonly<Record<string, string>> = {
  too_few: 'too few requests to judge',
  not_worse: 'not worse',
  worse: 'worse',
};

export function splitReportLines({ split_report }: Pick<AdminModel, 'split_report'>): string[] {
  const report = SplitReport.safeParse(split_report);
  if (!report.success) return [];
  const { sides, judgements } = report.data;
  return sides.map(({ ref, version, requests, error_rate, run_p95_s }) => {
    const verdict = judgements[ref]?.verdict;
    const facts = [
      plural(requests, 'request'),
      `${percent(error_rate)} errors`,
      ...(run_p95_s == null ? [] : [`p95 of runs ${milliseconds(run_p95_s * 1_000)} ms`]),
      ...(verdict === undefined ? [] : [VERDICTS[verdict] ?? verdict]),
    ];
    return `  ${ref}${version === null || version === ref ? '' : ` (${version})`}: ${facts.join(', ')}`;
  });
}

export function shadowReportLines({ shadow_report }: Pick<AdminModel, 'shadow_report'>): string[] {
  const report = ShadowReport.safeParse(shadow_report);
  if (!report.success) return [];
  const { version, compared, shadow_errors, outputs } = report.data;
  const differences = outputs.map(({ output, max_abs_error, changed_top1 }) => {
    const top = changed_top1 === null ? '' : `, top-1 changed in ${percent(changed_top1)}`;
    return `${output} differs by at most ${Number(max_abs_error.toPrecision(3))}${top}`;
  });
  return [`  ${version}: ${[`${compared} compared`, `${shadow_errors} errors`, ...differences].join('; ')}`];
}
