/** `remuda keys`, `remuda tenants` and `remuda audit`: what can be given, and which command it goes to. */
import { SCOPES } from '@remuda/schemas';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { withApi } from './api-options.js';
import type { CommandContext } from './commands/context.js';
import { momentOf, positiveNumber, secondsOf, wholeNumber } from './commands/option-values.js';

type Run = (context: CommandContext) => Promise<number>;
type Choose = (run: Run) => void;

const MOST = Number.MAX_SAFE_INTEGER;
const MOST_ENTRIES = 500;

export function addAccessCommands(program: Command, choose: Choose): void {
  const keys = program.command('keys').summary('API keys: make, list, show, rotate, revoke');
  addCreate(keys, choose);
  addKeyEdits(keys, choose);
  const tenants = program.command('tenants').summary('tenants: share of the work, and limits');
  addTenants(tenants, choose);
  addAudit(program, choose);
}

function addCreate(keys: Command, choose: Choose): void {
  withApi(keys.command('create').summary('make an API key; its secret is shown once'))
    .argument('<name>', 'who or what will use it')
    .option('--tenant <name>', 'whose requests it sends and sees (default: default)')
    .addOption(
      new Option(
        '--scopes <list>',
        `what it may, of ${SCOPES.join(',')} (default: submit,read; with --redis all)`,
      ).argParser(listed),
    )
    .addOption(
      new Option(
        '--expires <when>',
        'its end: a time such as 2030-01-31T00:00:00Z, or 90d, 12h from now',
      ).argParser(momentOf),
    )
    .addOption(new Option('--rate <n>', 'calls a second that it may make').argParser(positiveNumber))
    .addOption(
      new Option('--burst <n>', 'most of them at once (default: those of one second)').argParser(
        wholeNumber(1, 1_000_000),
      ),
    )
    .option('--redis', 'straight into the Redis of REDIS_URL, where there is no key yet that could make one')
    .action((name, options) =>
      choose(async (context) => (await import('./commands/create-key.js')).createKey(name, options, context)),
    );
}

function addKeyEdits(keys: Command, choose: Choose): void {
  withApi(keys.command('list', { isDefault: true }).summary('all keys, newest first'))
    .option('--tenant <name>', 'of that tenant alone')
    .action((options) =>
      choose(async (context) => (await import('./commands/keys.js')).listKeys(options, context)),
    );
  withApi(keys.command('show').summary('show one key'))
    .argument('<id>', 'id of the key')
    .action((id, options) =>
      choose(async (context) => (await import('./commands/keys.js')).showKey(id, options, context)),
    );
  withApi(keys.command('rotate').summary('give a key a new secret, shown once'))
    .argument('<id>', 'id of the key')
    .addOption(
      new Option(
        '--overlap <time>',
        'for how long the old secret is taken too: 10m, 1h, 1d (default: not at all)',
      ).argParser(secondsOf),
    )
    .addOption(new Option('--expires <when>', 'a new end: a time, or 90d from now').argParser(momentOf))
    .action((id, options) =>
      choose(async (context) => (await import('./commands/create-key.js')).rotateKey(id, options, context)),
    );
  withApi(keys.command('revoke').summary('take a key away: from the answer on nobody gets in with it'))
    .argument('<id>', 'id of the key')
    .action((id, options) =>
      choose(async (context) => (await import('./commands/keys.js')).revokeKey(id, options, context)),
    );
}

function addTenants(tenants: Command, choose: Choose): void {
  withApi(
    tenants
      .command('list', { isDefault: true })
      .summary('those of which something is set or that have a key'),
  ).action((options) =>
    choose(async (context) => (await import('./commands/tenants.js')).listTenants(options, context)),
  );
  withApi(tenants.command('show').summary('show one tenant'))
    .argument('<name>', 'name of the tenant')
    .action((name, options) =>
      choose(async (context) => (await import('./commands/tenants.js')).showTenant(name, options, context)),
    );
  const limit = (flag: string, what: string) =>
    new Option(`--${flag} <n>`, `most ${what} that have not ended; none: no limit`).argParser(limitOf);
  withApi(tenants.command('set').summary('set share and limits of a tenant; what is not named stays'))
    .argument('<name>', 'name of the tenant')
    .addOption(
      new Option(
        '--weight <n>',
        'share of the work: one of weight 2 gets twice that of one of weight 1',
      ).argParser(positiveNumber),
    )
    .addOption(limit('max-waiting', 'requests'))
    .addOption(limit('max-waiting-rows', 'rows'))
    .addOption(limit('max-waiting-bytes', 'bytes of input'))
    .action((name, options) =>
      choose(async (context) => (await import('./commands/tenants.js')).setTenant(name, options, context)),
    );
}

function addAudit(program: Command, choose: Choose): void {
  withApi(program.command('audit').summary('what was done by whom, newest first'))
    .addOption(new Option('--limit <n>', 'most entries').argParser(wholeNumber(1, MOST_ENTRIES)).default(20))
    .option('--before <id>', 'id of an entry: only what is older')
    .action((options) =>
      choose(async (context) => (await import('./commands/audit.js')).audit(options, context)),
    );
}

function listed(text: string): string[] {
  return text.split(',').map((part) => part.trim());
}

/** Commander would take null as no value. */
function limitOf(text: string): number | 'none' {
  if (text === 'none') return text;
  if (/^\d{1,15}$/.test(text) && Number(text) <= MOST) return Number(text);
  throw new InvalidArgumentError('Expected a whole number, or none.');
}
