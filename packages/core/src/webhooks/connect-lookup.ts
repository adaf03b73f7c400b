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

async function askDns(host: string): Promise<ResolvedAddress[]> {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  const [four, six] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
  const found: ResolvedAddress[] = [
    ...addressesOf(four).map((address) => ({ address, family: 4 as const })),
    ...addressesOf(six).map((address) => ({ address, family: 6 as const })),
  ];
  if (found.length > 0) return found;
  throw four.status === 'rejected' ? four.reason : new Error(`${host} has no address`);
}

function addressesOf(settled: PromiseSettledResult<string[]>): string[] {
  return settled.status === 'fulfilled' ? settled.value : [];
}
