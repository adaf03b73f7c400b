/**
 * Whether calls without an API key are taken. By default only on loopback addresses: a server that other machines reach
 * and that nobody has made a key for does not start, since it would either let everybody in or nobody.
 */
import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import type { Access } from '@remuda/core/access/access';
import { RemudaError } from '@remuda/core/errors';
import type { Logger } from '@remuda/core/observability/logger';
import type { LetsIn } from './caller.js';
import type { ApiConfig } from './config.js';

export interface LetInOptions {
  host: string;
  auth: ApiConfig['auth'];
  access: Pick<Access, 'anyUsableKey'>;
  logger: Logger;
}

const HOW = 'make one with `remuda keys create NAME --redis`, which needs REDIS_URL of this fleet';

/** @throws Error where the address is reached from outside, keys are asked for and there is none */
export async function whoIsLetIn({ host, auth, access, logger }: LetInOptions): Promise<LetsIn> {
  const loopback = await isLoopback(host);
  if (auth === 'open') {
    if (!loopback)
      logger.warn({ host }, 'everybody who reaches this API may do everything: REMUDA_API_AUTH=open');
    return 'everybody';
  }
  const keyExists = await anyKey(access, logger);
  if (auth === 'auto' && loopback) {
    if (keyExists)
      logger.warn(
        { host },
        'there are API keys, but on a loopback address none is asked for: set REMUDA_API_AUTH=keys',
      );
    return 'local';
  }
  if (keyExists !== false) return 'keys';
  if (!loopback) {
    throw new Error(
      `the API was to listen on ${host}, which other machines reach, and there is no API key that could be used: ${HOW}; ` +
        'or let everybody in with REMUDA_API_AUTH=open; or listen on 127.0.0.1',
    );
  }
  logger.warn({ host }, `every call is refused until there is an API key: ${HOW}`);
  return 'keys';
}

/** undefined: Redis cannot be asked. Then the server starts, and lets nobody in until it can. */
async function anyKey(access: LetInOptions['access'], logger: Logger): Promise<boolean | undefined> {
  try {
    return await access.anyUsableKey();
  } catch (error) {
    if (!(error instanceof RemudaError)) throw error;
    logger.warn({ err: error }, 'whether there is an API key is not known: Redis does not answer');
    return undefined;
  }
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');
LOOPBACK.addSubnet('::ffff:127.0.0.0', 104, 'ipv6');

/** Whether an address, or every address of a name, is of this machine alone. */
export async function isLoopback(host: string): Promise<boolean> {
  const addresses = isIP(host) ? [host] : (await lookup(host, { all: true })).map(({ address }) => address);
  return addresses.every((address) => LOOPBACK.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4'));
}
