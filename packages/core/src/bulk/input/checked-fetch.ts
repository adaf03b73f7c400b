/**
 * fetch for addresses that users have given: what may not be reached is refused by its text, and once more by what its
 * name resolves to, for the very connection. Redirects are left to the caller, who asks for each of them again.
 */
import { Agent, fetch as undiciFetch } from 'undici';
import type { Fetch } from '../../repository/sources/http-requests.js';
import { invalid } from '../../repository/sources/source-files.js';
import { shownUrl } from '../../repository/sources/source-uri.js';
import { type AllowedAddresses, refusedUrl } from '../../webhooks/address-rules.js';
import { AddressRefusedError, checkedLookup } from '../../webhooks/connect-lookup.js';

export interface CheckedFetch {
  fetch: Fetch;
  close(): Promise<void>;
}

/** @param allowed beside the public addresses; null: any address */
export function createCheckedFetch(allowed: AllowedAddresses | null): CheckedFetch {
  const agent = new Agent(allowed ? { connect: { lookup: checkedLookup(allowed) } } : {});
  const send = async (input: unknown, init: object = {}): Promise<unknown> => {
    const url = new URL(String(input));
    const refused = allowed && refusedUrl(url, allowed);
    if (refused) throw refusal(url, refused);
    try {
      return await undiciFetch(url, { ...init, dispatcher: agent });
    } catch (error) {
      const found = refusedIn(error);
      throw found ? refusal(url, found.message) : error;
    }
  };
  return { fetch: send as Fetch, close: () => agent.destroy() };
}

function refusal(url: URL, reason: string): Error {
  return invalid(
    `${shownUrl(url)} may not be fetched: ${reason}; the operator can allow the address (REMUDA_WEBHOOK_ALLOW), or give the file itself`,
  );
}

function refusedIn(error: unknown): AddressRefusedError | undefined {
  for (let link = error, depth = 0; link instanceof Error && depth < 5; link = link.cause, depth += 1)
    if (link instanceof AddressRefusedError) return link;
  return undefined;
}
