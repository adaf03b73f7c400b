/** The commands below `remuda webhooks`: what can be given. */
import { WEBHOOK_EVENTS } from '@remuda/schemas';
import { type Command, Option } from 'commander';
import { withApi } from './api-options.js';
import type { CommandContext } from './commands/context.js';
import { secondsOf } from './commands/option-values.js';

type Run = (context: CommandContext) => Promise<number>;
type Choose = (run: Run) => void;

export function addWebhookCommands(program: Command, choose: Choose): void {
  const webhooks = program
    .command('webhooks')
    .summary('who is told of the end of requests, how that went, and once more');
  addLog(webhooks, choose);
  addSecret(webhooks, choose);
  addEndpoints(webhooks, choose);
}

function addLog(webhooks: Command, choose: Choose): void {
  withApi(webhooks.command('list').summary('the webhooks of a request, and how the last attempt went'))
    .argument('<request>', 'id of the request')
    .action((request, options) =>
      choose(async (context) => (await log()).listWebhooks(request, options, context)),
    );
  withApi(webhooks.command('show').summary('one of them: what came of each attempt'))
    .argument('<id>', 'its webhook-id')
    .option('--body', 'the body that is sent, as it is signed, and nothing else')
    .action((id, options) => choose(async (context) => (await log()).showWebhook(id, options, context)));
  withApi(webhooks.command('redeliver').summary('send it once more, now'))
    .argument('<id>', 'its webhook-id')
    .action((id, options) => choose(async (context) => (await log()).redeliverWebhook(id, options, context)));
}

function addSecret(webhooks: Command, choose: Choose): void {
  tenant(webhooks.command('secret').summary('the secret that webhooks are signed with'))
    .option('--rotate', 'make a new one; the one before signs beside it for a while')
    .addOption(
      new Option('--overlap <time>', 'how long that is: 10m, 1h; 0: it has leaked (default: 1d)').argParser(
        secondsOf,
      ),
    )
    .action((options) => choose(async (context) => (await endpoints()).webhookSecret(options, context)));
}

function addEndpoints(webhooks: Command, choose: Choose): void {
  const group = webhooks.command('endpoints').summary('addresses that are told of every request of a tenant');
  tenant(group.command('list', { isDefault: true }).summary('all of them')).action((options) =>
    choose(async (context) => (await endpoints()).listEndpoints(options, context)),
  );
  tenant(group.command('add').summary('tell an address of every request from now on'))
    .argument('<url>', 'where it is sent by POST')
    .addOption(new Option('--events <events...>', 'which events (default: all)').choices(WEBHOOK_EVENTS))
    .option('--thin', 'the record without the result')
    .option('--only-key <id>', 'only requests that came with this API key')
    .action((url, options) =>
      choose(async (context) => (await endpoints()).addEndpoint(url, options, context)),
    );
  tenant(group.command('enable').summary('send to one again that was disabled'))
    .argument('<id>', 'id of the endpoint')
    .action((id, options) =>
      choose(async (context) => (await endpoints()).enableEndpoint(id, options, context)),
    );
  tenant(group.command('remove').summary('delete one; what is pending for it is given up'))
    .argument('<id>', 'id of the endpoint')
    .action((id, options) =>
      choose(async (context) => (await endpoints()).removeEndpoint(id, options, context)),
    );
}

const log = () => import('./commands/webhooks.js');
const endpoints = () => import('./commands/webhook-endpoints.js');

function tenant(command: Command): Command {
  return withApi(command).option('--tenant <name>', 'whose (default: of the caller)');
}
