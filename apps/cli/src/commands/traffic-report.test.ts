import { expect, it } from 'vitest';
import { shadowReportLines, splitReportLines } from './traffic-report.js';

it('a split is told side by side, with what was found', () => {
  const side = { input_errors: 0, run_p50_s: 0.01, weight: 50, errors: 0 };
  const split_report = {
    sides: [
      { ...side, ref: 'stable', version: '1', requests: 1_200, error_rate: 0.01, run_p95_s: 0.02 },
      { ...side, ref: '2', version: '2', requests: 1, error_rate: 0, run_p95_s: null },
    ],
    judgements: { '2': { verdict: 'too_few' } },
  };
  expect(splitReportLines({ split_report })).toEqual([
    '  stable (1): 1,200 requests, 1 % errors, p95 of runs 20.0 ms',
    '  2: 1 request, 0 % errors, too few requests to judge',
  ]);
});

it('a shadow is told with its differences', () => {
  const outputs = [{ output: 'y', max_abs_error: 0.25, changed_top1: 0.125 }];
  const shadow_report = { version: '2', compared: 8, shadow_errors: 0, outputs };
  expect(shadowReportLines({ shadow_report })).toEqual([
    '  2: 8 compared; 0 errors; y differs by at most 0.25, top-1 changed in 12.5 %',
  ]);
});

it('a report of another form, or none, is left out', () => {
  expect(splitReportLines({ split_report: null })).toEqual([]);
  expect(shadowReportLines({ shadow_report: { rows: 3 } })).toEqual([]);
});
