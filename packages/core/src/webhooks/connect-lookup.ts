/**
 * Resolves the name of a webhook's host for the very connection that is about to be made, and lets through only
 * addresses that may be reached: what was checked is what is connected, so a name that changes between two answers
 * (rebinding) gains nothing.
 *
 * DNS is asked directly: the system's resolver answers from four threads that the whole process shares, so that a few
 * names whose servers are dead would hold up every other host. It is asked only for names that the operator has allowed.
 */
import { Resolver, lookup as systemLookup } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AllowedAddresses, refusedAddress } from './address-rules.js';

export interface ResolvedAddress {
  address: string;
  family: 4 | 6;
}

/** All addresses of a name. @throws Error where it has none */
export type Resolve = (host: string) => Promise<ResolvedAddress[]>;

/** The name leads only to addresses that may not be reached. */
export class AddressRefusedError extends Error {
  override readonly name = 'AddressRefusedError';
}

const DNS_TIMEOUT_MS = 4_000;
const DNS_TRIES = 2;
const OTHER_FAMILY_MS = 100;

/** For the option `lookup` of a socket. */
export function checkedLookup(
  allowed: AllowedAddresses,
  resolve: Resolve = resolveName(allowed),
): LookupFunction {
  return (hostname, { all }, callback) => {
    const host = hostname.replace(/\.$/, '').toLowerCase();
    const answer = async (): Promise<void> => {
      const usable = usableOf(host, await resolve(host), allowed);
      if (all) callback(null, usable);
      else callback(null, (usable[0] as ResolvedAddress).address, (usable[0] as ResolvedAddress).family);
    };
    answer().catch((error: NodeJS.ErrnoException) => callback(error, []));
  };
}

function usableOf(
  host: string,
  found: readonly ResolvedAddress[],
  allowed: AllowedAddresses,
): ResolvedAddress[] {
  if (allowed.hosts.has(host)) return [...found];
  const reasons = found.map(({ address }) => refusedAddress(address, allowed));
  const usable = found.filter((_, at) => reasons[at] === undefined);
  if (usable.length > 0) return usable;
  throw new AddressRefusedError(`${host} resolves to what may not be reached: ${reasons.join('; ')}`);
}

function resolveName(allowed: AllowedAddresses): Resolve {
  return async (host) => {
    if (allowed.hosts.has(host)) {
      const found = await systemLookup(host, { all: true });
      return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
    }
    return askDns(host);
  };
}

/**
 * All addresses of a name, IPv4 first.
 * @param servers default: those of the system
 */
export async function askDns(host: string, servers?: readonly string[]): Promise<ResolvedAddress[]> {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  if (servers) resolver.setServers(servers);
  const four = resolver
    .resolve4(host)
    .then((found) => found.map((address) => ({ address, family: 4 as const })));
  const six = resolver
    .resolve6(host)
    .then((found) => found.map((address) => ({ address, family: 6 as const })));
  try {
    const settled = await Promise.allSettled([inTime(four, six), inTime(six, four)]);
    const found = settled.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
    if (found.length > 0) return found;
    throw settled[0].status === 'rejected' ? settled[0].reason : new Error(`${host} has no address`);
  } finally {
    resolver.cancel();
  }
}

/** Once the other family is there, this one is waited for only a moment: servers that never answer for IPv6 exist. */
async function inTime(
  wanted: Promise<ResolvedAddress[]>,
  other: Promise<unknown>,
): Promise<ResolvedAddress[]> {
  const enough = other.then(
    () => sleep(OTHER_FAMILY_MS, []),
    () => wanted,
  );
  return Promise.race([wanted, enough]);
}
