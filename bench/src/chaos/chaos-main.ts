/** `pnpm chaos`: hurts a fleet of its own in every way there is, and says whether it has kept its promises. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runCommand, timedSay, wholeNumber } from '../rig/command.js';
import { reportText } from './chaos-report.js';
import { makeOldBuild, OLD_BUILD, oldBuildObstacle } from './fleet/old-build.js';
import { FAULT_KINDS, FAULT_NAMES, type FaultName } from './plan/fault-kinds.js';
import { runChaos } from './run-chaos.js';

const SHORT = { ids: 600, faults: 30 };
const LONG = { ids: 20_000, faults: 240 };

const HELP = `usage: pnpm chaos [--long] [--seed N] [--ids N] [--faults N] [--only KIND,…] [--fsync always|everysec] [--keep] [--json]

  --long     ${LONG.ids} requests through ${LONG.faults} faults, and a rolling upgrade from an older build; default ${SHORT.ids} through ${SHORT.faults}
  --seed     repeats a run: the same faults, targets, gaps and requests; default a new one
  --ids, --faults  how many requests, and how many faults
  --only     these kinds of faults alone
  --old      commit of the older build of --long; default ${OLD_BUILD}
  --fsync    of the append-only file of Redis; default always (see docs/chaos.md)
  --keep     leaves the folder with logs, ledger and the files of Redis
  --json     prints one object and nothing else

kinds of faults:
${FAULT_NAMES.map((name) => `  ${name.padEnd(18)} ${FAULT_KINDS[name].about}`).join('\n')}
`;

await runCommand(main);

async function main(): Promise<number> {
  const { values } = parseArgs({
    args: process.argv.slice(2).filter((argument) => argument !== '--'),
    options: {
      long: { type: 'boolean', default: false },
      seed: { type: 'string' },
      ids: { type: 'string' },
      faults: { type: 'string' },
      only: { type: 'string' },
      old: { type: 'string', default: OLD_BUILD },
      fsync: { type: 'string', default: 'always' },
      keep: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const size = values.long ? LONG : SHORT;
  const options = {
    seed: whole('--seed', values.seed, Math.floor(Math.random() * 1_000_000)),
    ids: whole('--ids', values.ids, size.ids),
    faults: whole('--faults', values.faults, size.faults),
    only: kindsOf(values.only),
    fsync: fsyncOf(values.fsync),
    keep: values.keep,
  };
  const say = timedSay();
  const oldBuild = values.long ? olderBuild(values.old, say) : undefined;
  const report = await runChaos({ ...options, oldBuild, say });
  const { seed, ids, faults } = options;
  const only = values.only === undefined ? '' : ` --only ${values.only}`;
  const again = `pnpm chaos${values.long ? ' --long' : ''} --seed ${seed} --ids ${ids} --faults ${faults}${only}`;
  if (values.json) {
    for (const reason of report.red) say(`RED: ${reason}`);
    process.stdout.write(`${JSON.stringify(report.figures)}\n`);
  } else process.stdout.write(`${reportText(report, again)}\n`);
  return report.red.length === 0 ? 0 : 1;
}

/** In a folder that goes with this process. */
function olderBuild(commit: string, say: (line: string) => void): { root: string } | { obstacle: string } {
  const obstacle = oldBuildObstacle(commit);
  if (obstacle !== undefined) return { obstacle };
  say(`chaos: building ${commit} to begin the rolling upgrade with`);
  const folder = mkdtempSync(join(tmpdir(), 'remuda-chaos-old-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return { root: makeOldBuild(commit, folder) };
}

function whole(flag: string, text: string | undefined, otherwise: number): number {
  return text === undefined ? otherwise : wholeNumber(flag, text);
}

function kindsOf(text: string | undefined): FaultName[] | undefined {
  if (text === undefined) return undefined;
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.filter((name) => !(FAULT_NAMES as string[]).includes(name));
  if (unknown.length > 0)
    throw new Error(
      `--only ${unknown.join(', ')}: no such kind of fault; there are ${FAULT_NAMES.join(', ')}`,
    );
  return names as FaultName[];
}

function fsyncOf(text: string): 'always' | 'everysec' {
  if (text === 'always' || text === 'everysec') return text;
  throw new Error(`--fsync is ${JSON.stringify(text)}; it must be always or everysec`);
}
