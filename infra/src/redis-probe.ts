// Owns the few words of RESP that the launcher speaks before any client library is installed: is a Redis there,
// is it ready, which version, which process. Plain sockets, one connection a question.
import { readFileSync } from 'node:fs';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export interface RedisTarget {
  host: string;
  port: number;
  /** true: with Node's own authorities; else with these, as texts in PEM. */
  tls?: boolean | TlsFiles;
  username?: string;
  password?: string;
  socketPath?: string;
}

export interface TlsFiles {
  ca?: string;
  cert?: string;
  key?: string;
  servername?: string;
}

export type Reply = string | number | null | RedisReplyError | Reply[];

export class RedisReplyError extends Error {}

export type ProbeResult =
  | { state: 'ready'; version: string; pid: number | undefined }
  | { state: 'loading'; pid: number | undefined }
  | { state: 'refused'; reason: string }
  | { state: 'silent'; reason: string };

/** Of a single server. @param env for REMUDA_REDIS_TLS_CA and its like, which stand beside the URL */
export function parseRedisUrl(url: string, env: NodeJS.ProcessEnv = {}): RedisTarget {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed || !['redis:', 'rediss:', 'unix:'].includes(parsed.protocol)) {
    throw new Error('it is not of the form redis://[user:password@]host[:port][/database]');
  }
  if (parsed.protocol === 'unix:') return { host: '', port: 0, socketPath: parsed.pathname };
  return {
    host: parsed.hostname.replace(/^\[|\]$/g, '') || '127.0.0.1',
    port: Number(parsed.port || 6379),
    tls: parsed.protocol === 'rediss:' && tlsFiles(parsed.searchParams, env),
    username: decodeURIComponent(parsed.username) || undefined,
    password: decodeURIComponent(parsed.password) || undefined,
  };
}

function tlsFiles(query: URLSearchParams, env: NodeJS.ProcessEnv): TlsFiles {
  const files = ['ca', 'cert', 'key'].flatMap((name) => {
    const path = query.get(`tls_${name}`) ?? env[`REMUDA_REDIS_TLS_${name.toUpperCase()}`];
    return path ? [[name, readFileSync(path, 'utf8')]] : [];
  });
  const servername = query.get('tls_servername');
  return { ...Object.fromEntries(files), ...(servername ? { servername } : {}) };
}

/** PING and INFO; `refused` means a server answered but will not have us, so waiting does not help. */
export async function probeRedis(target: RedisTarget, timeoutMs = 1_000): Promise<ProbeResult> {
  let replies: Reply[];
  try {
    replies = await askRedis(target, [['PING'], ['INFO', 'server']], timeoutMs);
  } catch (error) {
    return { state: error instanceof RedisReplyError ? 'refused' : 'silent', reason: describe(error) };
  }
  const [ping, info] = replies;
  const facts = typeof info === 'string' ? info : '';
  const pid = Number(/^process_id:(\d+)/m.exec(facts)?.[1]) || undefined;
  if (ping === 'PONG')
    return { state: 'ready', version: /^redis_version:(\S+)/m.exec(facts)?.[1] ?? 'unknown', pid };
  const reason =
    ping instanceof RedisReplyError ? ping.message : `PING was answered with ${JSON.stringify(ping)}`;
  return reason.startsWith('LOADING') ? { state: 'loading', pid } : { state: 'refused', reason };
}

/** Sends the commands on a connection of their own and returns their replies in order. */
export function askRedis(target: RedisTarget, commands: string[][], timeoutMs: number): Promise<Reply[]> {
  const auth = target.password
    ? [target.username ? ['AUTH', target.username, target.password] : ['AUTH', target.password]]
    : [];
  const all = [...auth, ...commands];
  return new Promise((resolve, reject) => {
    const socket = openSocket(target);
    let received: Buffer = Buffer.alloc(0);
    const finish = (outcome: () => void) => {
      clearTimeout(timer);
      socket.destroy();
      outcome();
    };
    const timer = setTimeout(
      () => finish(() => reject(new Error(`no answer within ${timeoutMs} ms`))),
      timeoutMs,
    );
    socket.on('error', (error) => finish(() => reject(error)));
    socket.on('close', () => finish(() => reject(new Error('the connection was closed without an answer'))));
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      let replies: Reply[] | undefined;
      try {
        replies = parseReplies(received, all.length);
      } catch (error) {
        return finish(() => reject(error));
      }
      if (!replies) return;
      const [first] = replies;
      if (auth.length > 0 && first instanceof RedisReplyError) return finish(() => reject(first));
      const answers = replies.slice(auth.length);
      finish(() => resolve(answers));
    });
    socket.write(all.map(encodeCommand).join(''));
  });
}

function openSocket(target: RedisTarget): Socket {
  if (target.socketPath) return connectTcp({ path: target.socketPath });
  const address = { host: target.host, port: target.port };
  if (!target.tls) return connectTcp(address);
  return connectTls({ ...address, ...nameOf(target), ...(target.tls === true ? {} : target.tls) });
}

/** An address of IP is no name that a server could be asked for. */
function nameOf({ host }: RedisTarget): { servername?: string } {
  return isIP(host) === 0 ? { servername: host } : {};
}

function encodeCommand(words: string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`;
}

/** All `count` replies, or undefined while bytes are missing. */
function parseReplies(bytes: Buffer, count: number): Reply[] | undefined {
  const replies: Reply[] = [];
  let at = 0;
  while (replies.length < count) {
    const parsed = parseReply(bytes, at);
    if (!parsed) return undefined;
    replies.push(parsed.reply);
    at = parsed.next;
  }
  return replies;
}

function parseReply(bytes: Buffer, at: number): { reply: Reply; next: number } | undefined {
  const lineEnd = bytes.indexOf('\r\n', at);
  if (lineEnd < 0) return undefined;
  const line = bytes.toString('utf8', at + 1, lineEnd);
  const next = lineEnd + 2;
  switch (String.fromCharCode(bytes[at] ?? 0)) {
    case '+':
      return { reply: line, next };
    case '-':
      return { reply: new RedisReplyError(line), next };
    case ':':
      return { reply: Number(line), next };
    case '$':
      return parseBulk(bytes, Number(line), next);
    case '*':
      return parseArray(bytes, Number(line), next);
    default:
      throw new Error('what answers there does not speak the Redis protocol');
  }
}

function parseBulk(bytes: Buffer, length: number, at: number) {
  if (length < 0) return { reply: null, next: at };
  if (bytes.length < at + length + 2) return undefined;
  return { reply: bytes.toString('utf8', at, at + length), next: at + length + 2 };
}

function parseArray(bytes: Buffer, length: number, at: number) {
  const reply: Reply[] = [];
  let next = at;
  for (let i = 0; i < length; i++) {
    const parsed = parseReply(bytes, next);
    if (!parsed) return undefined;
    reply.push(parsed.reply);
    next = parsed.next;
  }
  return { reply, next };
}

/** A refused connection to `localhost` is an AggregateError with an empty message: name its parts. */
function describe(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map((part) => String(part.message)).join(', ');
  return error instanceof Error ? error.message : String(error);
}
