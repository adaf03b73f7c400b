/**
 * Which calls come from this machine and not through a browser that a page of somebody else steers. A server that asks
 * for no keys because it listens on a loopback address is reached by every browser of the machine: a page can send it
 * forms (Origin says from where), or have its own name lead to 127.0.0.1 and read the answers too (Host says that name).
 */
import type { IncomingHttpHeaders } from 'node:http';

const LOCAL_NAME = /^(localhost|[^.:/]+\.localhost|127(\.\d{1,3}){3}|\[::1\])$/i;

/** What is wrong with a call, undefined: nothing. @param own the name or address that the server was told to listen on */
export function foreignSign({ host, origin }: IncomingHttpHeaders, own: string): string | undefined {
  if (host !== undefined && !isLocal(host.replace(/:\d+$/, ''), own)) return `Host: ${host}`;
  if (origin === undefined) return undefined;
  const name = URL.canParse(origin) ? new URL(origin).hostname : '';
  return isLocal(name, own) ? undefined : `Origin: ${origin}`;
}

function isLocal(name: string, own: string): boolean {
  return LOCAL_NAME.test(name) || name === own;
}
