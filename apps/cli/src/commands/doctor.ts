/** `remuda doctor`: looks at everything that a fleet on this machine needs; each finding says what to do. */
import { probeMachine } from '@remuda/core/devices/probe';
import { checkApi } from '../doctor/check-api.js';
import { checkMachine } from '../doctor/check-machine.js';
import { checkNative } from '../doctor/check-native.js';
import { checkNode, checkPnpm } from '../doctor/check-programs.js';
import { checkProviders } from '../doctor/check-providers.js';
import { checkRedis } from '../doctor/check-redis.js';
import { checkRepository } from '../doctor/check-repository.js';
import type { Finding } from '../doctor/finding.js';
import { EXIT } from '../exit-codes.js';
import { plural } from '../terminal/figures.js';
import type { Terminal } from '../terminal/terminal.js';
import { modelsFolderOf, projectOf } from '../workspace.js';
import { type ApiOptions, type CommandContext, printJson } from './context.js';

export interface DoctorOptions extends ApiOptions {
  models?: string;
  state?: string;
  load?: boolean;
}

export async function doctor(options: DoctorOptions, { terminal, config }: CommandContext): Promise<number> {
  const { env, cwd } = config;
  const { redisFolder } = projectOf(cwd, options.state);
  const models = modelsFolderOf(cwd, options.models ?? config.modelsFolder);
  const groups = await Promise.all([
    checkNode(process.versions.node),
    checkPnpm(env),
    checkRedis({ given: config.redisUrl, redisFolder, env }),
    checkNative(),
    checkDevices(),
    checkRepository(models, { load: options.load === true }),
    checkApi(options.url ?? config.url, options.key ?? config.apiKey),
  ]);
  const findings = groups.flat();
  if (options.json) printJson(terminal, { ok: !findings.some(isFail), findings });
  else for (const line of findingLines(findings, terminal)) terminal.out(line);
  return findings.some(isFail) ? EXIT.failed : EXIT.ok;
}

/** One probe for both. */
async function checkDevices(): Promise<Finding[]> {
  const machine = await probeMachine();
  const groups = await Promise.all([checkMachine(async () => machine), checkProviders(machine)]);
  return groups.flat();
}

const isFail = ({ status }: Finding): boolean => status === 'fail';

export function findingLines(findings: readonly Finding[], { colours }: Terminal): string[] {
  const paint = { ok: colours.green, warn: colours.yellow, fail: colours.red };
  const indent = Math.max(...findings.map(({ check }) => check.length));
  const lines = findings.flatMap(({ check, status, detail, remedy }) => [
    `${paint[status](status.padEnd(4))}  ${check.padEnd(indent)}  ${detail}`,
    ...(remedy ? [`${' '.repeat(indent + 8)}→ ${remedy}`] : []),
  ]);
  const count = (status: Finding['status']) => findings.filter((finding) => finding.status === status).length;
  return [...lines, '', `${count('ok')} ok, ${plural(count('warn'), 'warning')}, ${count('fail')} failed`];
}
