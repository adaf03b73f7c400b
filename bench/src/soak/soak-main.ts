/** `pnpm soak [--requests N] [--short] [--json]`: runs the soak, prints a small table, exits with 1 when it fails. */
import { parseArgs } from 'node:util';
import Table from 'cli-table3';
import { type MemoryCourse, runSoak, type SoakReport } from '../soak.js';
import { sparkline } from './sparkline.js';

const SHORT_REQUESTS = 2_000;

const { values } = parseArgs({
  args: process.argv.slice(2).filter((argument) => argument !== '--'),
  options: {
    requests: { type: 'string' },
    short: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});

// Ctrl-C ends everything: servers stop with their parent, Redis and temporary folders at exit.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

const report = await runSoak({
  requests: values.requests ? Number(values.requests) : values.short ? SHORT_REQUESTS : undefined,
  log: (line) => process.stderr.write(`${line}\n`),
});
process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : `${soakText(report)}\n`);
process.exitCode = report.ok ? 0 : 1;

function soakText(soak: SoakReport): string {
  const table = new Table({
    head: [
      'process',
      'after warm-up MB',
      'at the end MB',
      'growth MB',
      'limit MB',
      'peak MB',
      'KB/1000 requests',
    ],
    style: { head: [], border: [] },
  });
  const row = (name: string, course: MemoryCourse): (string | number)[] => [
    name,
    course.from_mb,
    course.to_mb,
    course.growth_mb,
    soak.limit_mb,
    course.peak_mb,
    course.slope_kb_per_1000_requests,
  ];
  table.push(row('worker', soak.worker), row('runner', soak.runner));
  const { accepted, terminal, lost, doubled } = soak.ledger;
  return [
    table.toString(),
    `worker ${sparkline(soak.worker.samples_mb)}`,
    `runner ${sparkline(soak.runner.samples_mb)}`,
    `${accepted} accepted, ${terminal} ended, ${lost} lost, ${doubled} doubled in ${soak.seconds} s: ${soak.ok ? 'flat' : 'NOT flat'}`,
  ].join('\n');
}
