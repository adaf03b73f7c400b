import { describe, expect, it } from 'vitest';
import { displayWidth } from '../terminal/table.js';
import { jobWith } from './bulk-answers.fixture.js';
import { progressLine, progressText } from './progress-text.js';

describe('how far a bulk job is', () => {
  it('is told by rows where their number is known', () => {
    const job = jobWith({
      progress: { rows_done: 86_200, rows_per_s: 9_812.4, eta_s: 11.6, rows_failed: 3 },
    });
    expect(progressText(job)).toBe('43.1 %  86,200 of 200,000 rows  9,812 rows/s  ETA 12 s  3 failed');
    expect(progressLine(job)).toBe(`  ████████▋░░░░░░░░░░░ ${progressText(job)}`);
  });

  it('is told by bytes before the number of rows is known', () => {
    const job = jobWith({
      progress: { rows_total: null, rows_done: 50, bytes_read: 250_000, rows_per_s: 9.81, eta_s: 4_000 },
    });
    expect(progressText(job)).toBe('25.0 %  50 rows  9.8 rows/s  ETA 1 h 06 min');
    const ahead = { rows_total: null, rows_done: 30, rows_in_flight: 20, bytes_read: 1_000_000 };
    expect(progressText(jobWith({ progress: ahead }))).toBe('60.0 %  30 rows');
  });

  it('has no percent where nothing is known, and says what goes on', () => {
    const job = jobWith({ status: 'validating', progress: { rows_total: null, bytes_total: null } });
    expect(progressText(job)).toBe('0 rows  looking at the input');
  });

  it('says that the output is being joined when all rows are done', () => {
    const job = jobWith({ status: 'finalizing', progress: { rows_done: 200_000, eta_s: 0 } });
    expect(progressText(job)).toBe('100.0 %  200,000 of 200,000 rows  joining the output');
  });

  it.each([0, 0.001, 0.5, 0.999, 1])('has a bar of the same width at %d', (share) => {
    const line = progressLine(jobWith({ progress: { rows_done: share * 200_000 } }));
    expect(displayWidth(line.slice(0, line.indexOf(' ', 2)))).toBe(22);
  });
});
