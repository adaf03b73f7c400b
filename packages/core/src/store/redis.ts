/**
 * The only home of ioredis: one connection profile for each role. The API fails fast, so that a request is refused
 * rather than kept in memory; workers and runners wait for Redis for ever, so that nothing they hold is dropped.
 */
import { readFileSync } from 'node:fs';
import { Cluster, Redis, type RedisOptions, SentinelConnector } from 'ioredis';
import { onreadConnector, type TakeBytes } from './onread-connector.js';
import { parseRedisAddress, type RedisAddress } from './redis-address.js';
import { sentinelConnector } from './sentinel-connector.js';

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
  /** Of any form that redis-address.ts knows. */
  url: string;
  role: RedisRole;
  /** Shown by CLIENT LIST. */
  name: string;
  onError(error: Error): void;
  /** Reads into one reused buffer, and is offered every piece that comes before ioredis is. Not with a Cluster. */
  onBytes?: TakeBytes;
}

/**
 * A connection of the given role. It connects by itself and reconnects for ever; errors go to onError. With a Cluster it
 * is one to each of its servers that looks like a single one: what concerns all keys goes to redisNodes().
 */
export function connectRedis({ url, role, name, onError, onBytes }: ConnectOptions): Redis {
  const address = parseRedisAddress(url);
  const options: RedisOptions = {
    ...PROFILES[role],
    connectionName: `remuda-${name}`,
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepAlive: 10_000,
    retryStrategy: reconnectAfter,
    reconnectOnError: isDemoted,
  };
  const redis =
    address.kind === 'cluster' ? openCluster(address, options) : openRedis(address, options, onBytes);
  redis.on('error', onError);
  defineScripts(redis);
  if (role === 'subscriber' || role === 'payloads') return redis;
  const cluster = clusterOf(redis);
  if (cluster) cluster.on('+node', (node: Redis) => writeOncePerTurn(node));
  else writeOncePerTurn(redis);
  return redis;
}

function reconnectAfter(times: number): number {
  return Math.min(RECONNECT_MS.first * 2 ** Math.min(times, 6), RECONNECT_MS.most);
}

/** It is a replica by now: the next connection leads to the new master. The command is sent again where the role waits. */
function isDemoted(error: Error): 2 | false {
  return error.message.includes('READONLY') ? 2 : false;
}

function openRedis(
  address: Exclude<RedisAddress, { kind: 'cluster' }>,
  options: RedisOptions,
  onBytes: TakeBytes | undefined,
): Redis {
  const { username, password, db } = address;
  const login = { username, password, db };
  if (address.kind === 'socket')
    return new Redis({ ...options, ...login, path: address.path, ...reading(onBytes) });
  const { tls } = address;
  if (address.kind === 'single') {
    const { host, port } = address;
    return new Redis({ ...options, ...login, host, port, tls, ...reading(onBytes) });
  }
  const { sentinels, master, sentinelUsername, sentinelPassword } = address;
  return new Redis({
    ...{ ...options, ...login, sentinels, name: master, role: 'master', sentinelUsername, sentinelPassword },
    ...(tls ? { tls, sentinelTLS: tls, enableTLSForSentinelMode: true } : {}),
    sentinelRetryStrategy: reconnectAfter,
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
    // A master that hangs keeps its connections: the Sentinels say when another has taken over.
    ...{ failoverDetector: true, sentinelMaxConnections: 2 },
    Connector: sentinelConnector(SentinelConnector, onBytes),
  } as RedisOptions);
}

function reading(onBytes: TakeBytes | undefined): Pick<RedisOptions, 'Connector'> {
  return onBytes ? { Connector: onreadConnector(onBytes) as unknown as RedisOptions['Connector'] } : {};
}

function openCluster(
  { nodes, username, password, tls }: Extract<RedisAddress, { kind: 'cluster' }>,
  { retryStrategy, enableOfflineQueue = true, ...redisOptions }: RedisOptions,
): Redis {
  const cluster = new Cluster(nodes, {
    redisOptions: { ...redisOptions, username, password, tls },
    enableOfflineQueue,
    clusterRetryStrategy: reconnectAfter,
    // Certificates name hosts, not the addresses they are found under.
    ...(tls ? { dnsLookup: (host, done) => done(null, host) } : {}),
    slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
  });
  // What is used of it is what both have; the rest goes through redisNodes().
  return cluster as unknown as Redis;
}

function clusterOf(redis: object): Cluster | null {
  return redis instanceof Cluster ? redis : null;
}

/** The servers that keys are spread over. */
export function redisNodes(redis: Redis): Redis[] {
  return clusterOf(redis)?.nodes('master') ?? [redis];
}

/** Whether its keys are spread over several servers, so that a command may take keys of one slot only. */
export function isCluster(redis: Redis): boolean {
  return clusterOf(redis) !== null;
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

/** Ends a connection without waiting for what is under way. */
export function closeRedis(redis: Redis): void {
  redis.disconnect();
}

/** Each script's file; the number of keys is given with each call, since it varies with the number of requests. */
const SCRIPTS = {
  acceptRequest: ['usage.lua', 'accept-request-N.lua'],
  withdrawRequest: ['usage.lua', 'ending.lua', 'letters.lua', 'withdraw-request-3.lua'],
  claimRequests: ['usage.lua', 'ending.lua', 'claim-requests-N.lua'],
  writeOutcomes: ['usage.lua', 'ending.lua', 'letters.lua', 'write-outcomes-N.lua'],
  endRequest: ['usage.lua', 'ending.lua', 'letters.lua', 'end-request-2.lua'],
  expireRequest: ['usage.lua', 'ending.lua', 'letters.lua', 'expire-request-2.lua'],
  listDue: ['usage.lua', 'ending.lua', 'list-due-1.lua'],
  dropLetters: ['letters.lua', 'drop-letters-1.lua'],
  redriveLetter: ['letters.lua', 'redrive-letter-1.lua'],
  trimLetters: ['letters.lua', 'trim-letters-1.lua'],
  countRescue: ['count-rescue-1.lua'],
  rerouteRequest: ['usage.lua', 'reroute-request-2.lua'],
  recountUsage: ['usage.lua', 'ending.lua', 'recount-usage-2.lua'],
  saveDeployment: ['save-deployment-3.lua'],
  saveServing: ['save-serving-2.lua'],
  addToReport: ['add-to-report-2.lua'],
  takeAftermath: ['take-aftermath-1.lua'],
  beginOnce: ['begin-once-1.lua'],
  settleOnce: ['settle-once-1.lua'],
  lookInCache: ['cache-clock.lua', 'look-in-cache-1.lua'],
  keepInCache: ['cache-clock.lua', 'keep-in-cache-1.lua'],
  leaveCache: ['leave-cache-1.lua'],
  answerRequest: ['usage.lua', 'ending.lua', 'answer-request-2.lua'],
  followRequest: ['follow-request-1.lua'],
  saveAccess: ['save-access-1.lua'],
  countCall: ['count-call-1.lua'],
  finishAftermath: ['usage.lua', 'ending.lua', 'finish-aftermath-2.lua'],
  holdLease: ['hold-lease-1.lua'],
  releaseLease: ['release-lease-1.lua'],
  measureOutcomes: ['measure-outcomes-1.lua'],
  addWebhookEndpoint: ['add-webhook-endpoint-1.lua'],
  createWebhook: ['create-webhook-1.lua'],
  logWebhook: ['log-webhook-1.lua'],
  redeliverWebhook: ['redeliver-webhook-1.lua'],
  createBulkJob: ['create-bulk-job-4.lua'],
  takeBulkJob: ['take-bulk-job-1.lua'],
  writeBulkJob: ['write-bulk-job-3.lua'],
  steerBulkJob: ['steer-bulk-job-3.lua'],
  rotateWebhookSecret: ['rotate-webhook-secret-1.lua'],
} as const;
export type ScriptName = keyof typeof SCRIPTS;

const folder = new URL('../../src/store/scripts/', import.meta.url);

/** Text of one of our scripts. */
export function scriptText(file: string): string {
  return readFileSync(new URL(file, folder), 'utf8');
}

function defineScripts(redis: Redis): void {
  for (const [name, files] of Object.entries(SCRIPTS)) {
    redis.defineCommand(`remuda_${name}`, { lua: files.map(scriptText).join('\n') });
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
