/**
 * `pnpm bench [PART…] [--json] [--quick | --full] [--rounds N] [--log-level L] [--redis tcp|unix]`: measures Remuda and its
 * yardsticks in the same run on the same machine. Progress goes to standard error; the table, or with --json one
 * object, to standard output.
 */
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { bulk } from './parts/bulk/bulk.js';
import { drain, images, live } from './parts/classifier.js';
import { converge } from './parts/converge.js';
import { eta } from './parts/eta.js';
import { idle } from './parts/idle.js';
import { idleModels } from './parts/idle-models.js';
import { loadCycles } from './parts/load-cycles.js';
import { overhead } from './parts/overhead.js';
import { overload } from './parts/overload.js';
import type { PartContext } from './parts/part.js';
import { profile } from './parts/profile.js';
import { recogniser, scale } from './parts/recogniser.js';
import { route } from './parts/route.js';
import { swap } from './parts/swap.js';
import { waiters } from './parts/waiters.js';
import { type Report, reportTable } from './report.js';
import { Ledger } from './rig/ledger.js';

/** Name on the command line → how it is measured and where it stands in the report. */
const PARTS = {
  drain: { key: 'drain', run: drain },
  live: { key: 'live', run: live },
  images: { key: 'images', run: images },
  recogniser: { key: 'recogniser', run: recogniser },
  overhead: { key: 'overhead', run: overhead },
  idle: { key: 'idle_latency', run: idle },
  'idle-models': { key: 'idle_models', run: idleModels },
  scale: { key: 'scale', run: scale },
  'load-cycles': { key: 'load_cycles', run: loadCycles },
  route: { key: 'route', run: route },
  eta: { key: 'eta', run: eta },
  profile: { key: 'profile', run: profile },
  swap: { key: 'swap', run: swap },
  converge: { key: 'converge', run: converge },
  overload: { key: 'overload', run: overload },
  waiters: { key: 'waiters', run: waiters },
  bulk: { key: 'bulk', run: bulk },
} as const satisfies Record<string, { key: keyof Report; run(context: PartContext): Promise<unknown> }>;
type PartName = keyof typeof PARTS;

const USAGE = `usage: npm run bench -- [--json] [--quick | --full] [--rounds N] [--redis tcp|unix] [--log-level LEVEL] [PART …]
parts: ${Object.keys(PARTS).join(', ')}; without any, all of them (see docs/benchmarks.md)`;

const { values, positionals } = parseArgs({
  // `pnpm bench -- drain` hands the dashes on.
  args: process.argv.slice(2).filter((argument) => argument !== '--'),
  allowPositionals: true,
  options: {
    help: { type: 'boolean', short: 'h', default: false },
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    'log-level': { type: 'string' },
    redis: { type: 'string', default: 'tcp' },
  },
});

if (values.help) {
  console.log(USAGE);
  process.exit(0);
}

// Ctrl-C ends everything: servers stop with their parent, Redis and temporary folders at exit.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

const report = await measure(partNames(positionals));
process.stdout.write(values.json ? `${JSON.stringify(asObject(report))}\n` : `${reportTable(report)}\n`);
process.exitCode = report.ledger.lost + report.ledger.doubled === 0 ? 0 : 1;

async function measure(names: readonly PartName[]): Promise<Report> {
  const ledger = new Ledger();
  const context: PartContext = {
    quick: values.quick,
    full: values.full && !values.quick,
    rounds: values.rounds ? Number(values.rounds) : values.quick ? 1 : 3,
    ledger,
    rig: { logLevel: values['log-level'], redisOver: values.redis === 'unix' ? 'unix' : 'tcp' },
    log: (line) => process.stderr.write(`${line}\n`),
  };
  const [cpu] = cpus();
  context.log(
    `${cpus().length} × ${cpu?.model ?? 'unknown CPU'}, Node ${process.version}, Redis over ${context.rig.redisOver}`,
  );
  const figures: Record<string, unknown> = {};
  for (const name of names) figures[PARTS[name].key] = await PARTS[name].run(context);
  return { ...figures, ledger: ledger.counts };
}

/** Bulk alone is its files and what was beside them; with other parts it stands under its name, as they do. */
function asObject(report: Report): object {
  const { bulk: files, ledger, ...others } = report;
  return files && Object.keys(others).length === 0 ? { ...files, ledger } : report;
}

function partNames(given: readonly string[]): PartName[] {
  return given.length === 0 ? (Object.keys(PARTS) as PartName[]) : given.map(partNamed);
}

function partNamed(name: string): PartName {
  const known = Object.keys(PARTS) as PartName[];
  const found = known.find((part) => part === name || PARTS[part].key === name);
  if (found) return found;
  console.error(`unknown part "${name}": the parts are ${known.join(', ')}`);
  process.exit(2);
}
