/**
 * Which addresses a webhook may be sent to: those that everybody on the internet could reach, and what the operator has
 * allowed by name or by range. Everything that is not known to be public is refused, so a kind of address that nobody
 * has thought of is refused too. Pure. Asked twice: for a URL when it is given, and for what its name resolves to when
 * it is connected (connect-lookup.ts), since a name can change its mind in between.
 */
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Range = [address: Address, bits: number];

export interface AllowedAddresses {
  ranges: readonly Range[];
  /** Lower case, without a dot at the end. */
  hosts: ReadonlySet<string>;
}

export const NOTHING_ALLOWED: AllowedAddresses = { ranges: [], hosts: new Set() };

/** Public by its number, and yet the inside of a cloud: the platform's own server on every Azure machine. */
const METADATA = ['168.63.129.16'];
/** IPv6 that carries an IPv4 address in its last four bytes, as NAT64 does: as public as that one is. */
const NAT64: Range = [ipaddr.parse('64:ff9b::'), 96];
/** Of IPv6 nothing outside of this has been given to anybody (RFC 4291). */
const GLOBAL_IPV6: Range = [ipaddr.parse('2000::'), 3];
const HOST_NAME = /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*$/;

/**
 * @param text addresses, ranges in CIDR form and host names, separated by commas
 * @throws Error that names the first entry which is none of them
 */
export function parseAllowed(text: string): AllowedAddresses {
  const ranges: Range[] = [];
  const hosts = new Set<string>();
  for (const entry of text.split(',').map((part) => part.trim().toLowerCase())) {
    if (entry === '') continue;
    const range = rangeOf(entry);
    if (range) ranges.push(range);
    else if (HOST_NAME.test(entry) && !/^[\d.]+$/.test(entry)) hosts.add(entry);
    else throw new Error(`"${entry}" is no address, no range such as 10.0.0.0/8, and no host name`);
  }
  return { ranges, hosts };
}

function rangeOf(entry: string): Range | undefined {
  try {
    if (entry.includes('/')) return ipaddr.parseCIDR(entry);
    if (!ipaddr.IPv4.isValidFourPartDecimal(entry) && !entry.includes(':')) return undefined;
    const address = ipaddr.parse(entry);
    return [address, address.kind() === 'ipv4' ? 32 : 128];
  } catch {
    return undefined;
  }
}

/**
 * Why a URL may not be sent to, as far as its text tells; undefined: it may be, or its name has to be resolved first.
 * Other spellings of an address (decimal, octal, hexadecimal, a dot at the end) are none any more in a parsed URL.
 */
export function refusedUrl(url: URL, allowed: AllowedAddresses): string | undefined {
  const host = hostOf(url);
  if (allowed.hosts.has(host)) return undefined;
  if (host === 'localhost' || host.endsWith('.localhost')) return `${host} is this machine`;
  return isAddress(host) ? refusedAddress(host, allowed) : undefined;
}

/** Whether the operator has allowed the very host of a URL, by its name or by a range that its address lies in. */
export function isNamed(url: URL, { ranges, hosts }: AllowedAddresses): boolean {
  const host = hostOf(url);
  if (hosts.has(host)) return true;
  return isAddress(host) && ranges.some((range) => isIn(withinIt(ipaddr.parse(host)), range));
}

/** Host of a URL as it is resolved: lower case, without the brackets of IPv6 and without the dot of the root. */
export function hostOf({ hostname }: URL): string {
  return hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase();
}

export function isAddress(host: string): boolean {
  return ipaddr.isValid(host);
}

/** Why that address may not be connected to; undefined: it may. */
export function refusedAddress(text: string, allowed: AllowedAddresses): string | undefined {
  // The zone of a link-local address says through which device, not where to.
  const bare = text.replace(/%.*$/, '');
  if (!ipaddr.isValid(bare)) return `${text} is no address`;
  const address = withinIt(ipaddr.parse(bare));
  if (allowed.ranges.some(([range, bits]) => isIn(address, [range, bits]))) return undefined;
  if (METADATA.includes(address.toString())) return `${text} is a metadata address`;
  const range = address.range();
  if (range !== 'unicast') return `${text} is no public address (${RANGE_NAMES[range] ?? range})`;
  if (address.kind() === 'ipv4' || isIn(address, GLOBAL_IPV6)) return undefined;
  return `${text} is no public address (not assigned)`;
}

/** The IPv4 address inside an IPv6 one that stands for it. */
function withinIt(address: Address): Address {
  if (address.kind() === 'ipv4') return address;
  const six = address as ipaddr.IPv6;
  if (six.isIPv4MappedAddress()) return six.toIPv4Address();
  return isIn(six, NAT64) ? new ipaddr.IPv4(six.toByteArray().slice(12)) : six;
}

function isIn(address: Address, [range, bits]: Range): boolean {
  return address.kind() === range.kind() && (address as ipaddr.IPv4).match(range as ipaddr.IPv4, bits);
}

const RANGE_NAMES: Readonly<Record<string, string>> = {
  linkLocal: 'link-local, where metadata services are',
  uniqueLocal: 'private',
  carrierGradeNat: 'shared, behind a carrier',
  '6to4': 'a 6to4 tunnel',
  teredo: 'a Teredo tunnel',
  rfc6145: 'translated IPv4',
  rfc6052: 'translated IPv4',
};
