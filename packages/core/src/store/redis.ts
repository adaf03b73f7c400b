/**
 * The only home of ioredis: one connection profile for each role. The API fails fast, so that a request is refused
 * rather than kept in memory; workers and runners wait for Redis for ever, so that nothing they hold is dropped.
 */
import { readFileSync } from 'node:fs';
import { Redis, type RedisOptions } from 'ioredis';
import { onreadConnector, type TakeBytes } from './onread-connector.js';

export type { Redis } from 'ioredis';

/**
 * api: commands of HTTP requests. worker: BullMQ's and the worker's own, retried for ever. runner: payloads and
 * results. subscriber: pub/sub only. payloads: what a PayloadReader opens.
 */
export type RedisRole = 'api' | 'worker' | 'runner' | 'subscriber' | 'payloads';

/** Longest time the API waits for one command; with the reconnect check it keeps every answer within 2 s. */
const API_COMMAND_TIMEOUT_MS = 1_200;
const CONNECT_TIMEOUT_MS = 2_000;
const RECONNECT_MS = { first: 50, most: 1_000 };

const PROFILES: Record<RedisRole, RedisOptions> = {
  api: {
    enableOfflineQueue: false,
    commandTimeout: API_COMMAND_TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
  },
  worker: { maxRetriesPerRequest: null },
  runner: { maxRetriesPerRequest: null },
  subscriber: { maxRetriesPerRequest: null, autoResubscribe: true },
  payloads: { maxRetriesPerRequest: null, protocol: 2 },
};

export interface ConnectOptions {
  /** redis://, rediss:// or unix:// */
  url: string;
  role: RedisRole;
  /** Shown by CLIENT LIST. */
  name: string;
  onError(error: Error): void;
  /** Reads into one reused buffer, and is offered every piece that comes before ioredis is. */
  onBytes?: TakeBytes;
}

/** A connection of the given role. It connects by itself and reconnects for ever; errors go to onError. */
export function connectRedis({ url, role, name, onError, onBytes }: ConnectOptions): Redis {
  const options: RedisOptions = {
    ...PROFILES[role],
    connectionName: `remuda-${name}`,
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepAlive: 10_000,
    retryStrategy: (times) => Math.min(RECONNECT_MS.first * 2 ** Math.min(times, 6), RECONNECT_MS.most),
    ...(onBytes ? { Connector: onreadConnector(onBytes) as unknown as RedisOptions['Connector'] } : {}),
  };
  const redis = new Redis(url.replace(/^unix:\/\//, ''), options);
  redis.on('error', onError);
  defineScripts(redis);
  if (role !== 'subscriber' && role !== 'payloads') writeOncePerTurn(redis);
  return redis;
}

/**
 * Sends all commands of one turn of the event loop in one write: setImmediate comes behind every socket that had
 * something to say in this turn, and before the loop waits again, so nobody waits longer for it. One write for each
 * tick of a socket (process.nextTick) cost Redis a fifth more for each accepted request, since it reads, and answers,
 * what one write brings. ioredis has auto-pipelining, but it holds everything back while a pipeline is under way:
 * measured at 8 submits side by side it cost 159 µs of CPU for each, plain writes 102, a write a tick 86.
 */
function writeOncePerTurn(redis: Redis): void {
  const send = redis.sendCommand;
  let corked: Redis['stream'] | undefined;
  redis.sendCommand = function sendCorked(...args: Parameters<Redis['sendCommand']>) {
    const { stream } = redis;
    if (stream && stream !== corked) {
      corked = stream;
      stream.cork?.();
      setImmediate(() => {
        corked = undefined;
        stream.uncork?.();
      });
    }
    return send.apply(redis, args);
  };
}

/** Resolves when the connection answers; rejects after `ms`. */
export async function waitUntilReady(redis: Redis, ms: number): Promise<void> {
  if (redis.status === 'ready') return;
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      redis.off('ready', ready);
      reject(new Error(`Redis did not answer within ${ms} ms`));
    }, ms);
    const ready = (): void => {
      clearTimeout(timer);
      resolve();
    };
    redis.once('ready', ready);
  });
}

/** The servers that keys are spread over: what a command that concerns all keys has to be sent to. */
export function redisNodes(redis: Redis): Redis[] {
  return [redis];
}

/** Ends a connection without waiting for what is under way. */
export function closeRedis(redis: Redis): void {
  redis.disconnect();
}

/** Each script's file; the number of keys is given with each call, since it varies with the number of requests. */
const SCRIPTS = {
  acceptRequest: ['accept-request-N.lua'],
  withdrawRequest: ['ending.lua', 'withdraw-request-3.lua'],
  claimRequests: ['ending.lua', 'claim-requests-N.lua'],
  writeOutcomes: ['ending.lua', 'letters.lua', 'write-outcomes-N.lua'],
  endRequest: ['ending.lua', 'letters.lua', 'end-request-2.lua'],
  expireRequest: ['ending.lua', 'letters.lua', 'expire-request-2.lua'],
  listDue: ['ending.lua', 'list-due-1.lua'],
  dropLetters: ['letters.lua', 'drop-letters-1.lua'],
  trimLetters: ['letters.lua', 'trim-letters-1.lua'],
  countRescue: ['count-rescue-1.lua'],
  rerouteRequest: ['reroute-request-1.lua'],
  saveDeployment: ['save-deployment-3.lua'],
  saveServing: ['save-serving-2.lua'],
  addToReport: ['add-to-report-2.lua'],
  takeAftermath: ['take-aftermath-1.lua'],
  saveAccess: ['save-access-1.lua'],
  countCall: ['count-call-1.lua'],
  finishAftermath: ['ending.lua', 'finish-aftermath-2.lua'],
  holdLease: ['hold-lease-1.lua'],
  releaseLease: ['release-lease-1.lua'],
  measureOutcomes: ['measure-outcomes-1.lua'],
  createWebhook: ['create-webhook-1.lua'],
  logWebhook: ['log-webhook-1.lua'],
  redeliverWebhook: ['redeliver-webhook-1.lua'],
  rotateWebhookSecret: ['rotate-webhook-secret-1.lua'],
} as const;
export type ScriptName = keyof typeof SCRIPTS;

const folder = new URL('../../src/store/scripts/', import.meta.url);

function defineScripts(redis: Redis): void {
  for (const [name, files] of Object.entries(SCRIPTS)) {
    const lua = files.map((file) => readFileSync(new URL(file, folder), 'utf8')).join('\n');
    redis.defineCommand(`remuda_${name}`, { lua });
  }
}

type ScriptArgument = string | number | Buffer;
type ScriptCall = (...args: ScriptArgument[]) => Promise<unknown>;

/** Calls one of our scripts; replies hold Buffers where `buffers` is set. */
export function callScript(
  target: object,
  name: ScriptName,
  keys: readonly string[],
  args: readonly ScriptArgument[],
  buffers = false,
): Promise<unknown> {
  const method = `remuda_${name}${buffers ? 'Buffer' : ''}` as keyof typeof target;
  return (target[method] as unknown as ScriptCall).call(target, keys.length, ...keys, ...args);
}
