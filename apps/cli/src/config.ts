/**
 * What the CLI takes from the environment: the only file of this app that reads it. Settings that the fleet shares
 * are read too, so that a misspelt one is told here and not first by a child of `remuda up`.
 */
import { readSettings } from '@remuda/core/settings/settings';
import { redisUrlOf, SharedSettings } from '@remuda/core/settings/shared-settings';
import type { Keyspace } from '@remuda/core/store/keys';
import * as z from 'zod';
import { CliError, reasonOf } from './cli-error.js';
import { EXIT } from './exit-codes.js';

/** Port that the API listens on unless REMUDA_API_PORT says otherwise. */
export const DEFAULT_API_URL = 'http://127.0.0.1:8080';

export const CliSettings = SharedSettings.extend({
  REMUDA_URL: z
    .url({ protocol: /^https?$/, error: 'an http:// or https:// address' })
    .default(DEFAULT_API_URL)
    .describe('Address of the API that commands talk to. Set it for a fleet on another machine.'),
  REMUDA_API_KEY: z
    .string()
    .default('')
    .describe('API key that commands send. Not an option: a command line is seen by all on the machine.'),
});

export interface CliConfig {
  /** Address of the API, without a slash at its end. */
  url: string;
  /** undefined: calls are made without. */
  apiKey: string | undefined;
  keyspace: Keyspace;
  /** undefined: not set, so a local server is looked for. */
  redisUrl: string | undefined;
  /** undefined: not set, so `models` of the project. */
  modelsFolder: string | undefined;
  cwd: string;
  /** The environment for children: all of it but the key, which they need not have. */
  env: NodeJS.ProcessEnv;
}

/** @throws CliError naming each variable that is wrong or unknown */
export function readConfig(env: NodeJS.ProcessEnv, cwd: string): CliConfig {
  try {
    const settings = readSettings(CliSettings, env);
    return {
      url: settings.REMUDA_URL.replace(/\/+$/, ''),
      apiKey: settings.REMUDA_API_KEY === '' ? undefined : settings.REMUDA_API_KEY,
      keyspace: { prefix: settings.REMUDA_KEY_PREFIX, shards: settings.REMUDA_RECORD_SHARDS },
      redisUrl: env.REDIS_URL ? redisUrlOf(settings) : undefined,
      modelsFolder: env.REMUDA_MODELS ? settings.REMUDA_MODELS : undefined,
      cwd,
      env: withoutKey(env),
    };
  } catch (error) {
    throw new CliError(reasonOf(error), EXIT.usage, { cause: error });
  }
}

function withoutKey({ REMUDA_API_KEY: _, ...env }: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return env;
}

/** Whether to colour what goes to a stream (no-color.org; FORCE_COLOR goes before). Cannot fail. */
export function wantsColour(env: NodeJS.ProcessEnv, stream: { isTTY?: boolean }): boolean {
  if (env.FORCE_COLOR) return env.FORCE_COLOR !== '0';
  if (env.NO_COLOR) return false;
  return stream.isTTY === true && env.TERM !== 'dumb';
}
