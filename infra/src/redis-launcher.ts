// Gets a Redis: the user's by REDIS_URL, else a server found on the PATH, else one installed by apt-get, else a
// message that says how. Invariant: never two servers on one data folder (a lock around the start, and `redis.json`
// names the running one). What a process killed hard left behind is taken over by the next start.
import { mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isRunning, withLock } from '../setup/process-lock.mjs';
import { installRedis, whyNotInstallable } from './install-redis.js';
import { askRedis, type ProbeResult, parseRedisUrl, probeRedis, type RedisTarget } from './redis-probe.js';
import {
  dropLog,
  findRedisServer,
  killRedisProcess,
  markStopped,
  type RedisProcess,
  type RedisRecord,
  readRecord,
  type StartOptions,
  startRedisProcess,
  stopAtExit,
  stopRedisProcess,
  writeRecord,
} from './redis-process.js';

export interface EnsureRedisOptions {
  /** REDIS_URL and PATH are read from it. */
  env: NodeJS.ProcessEnv;
  /** The folder that the server writes its append-only file to, normally `.remuda/redis`. */
  dataDir: string;
  log: (line: string) => void;
  /** Whether apt-get may be used where it can. */
  allowInstall: boolean;
  /** Whether what it holds outlives it; default true. */
  appendonly?: boolean;
  /** Listen on a Unix socket too; its path is in the answer. */
  unixSocket?: boolean;
  /** How long to wait for REDIS_URL to answer. Raise it when that server starts together with Remuda. */
  connectTimeoutMs?: number;
}

export interface RunningRedis {
  url: string;
  /** True when this process started (or took over) the server, and `stop` ends it. */
  owned: boolean;
  version: string;
  pid?: number;
  socketPath?: string;
  /** Ends the server when it is owned. Safe to call twice. */
  stop(): Promise<void>;
}

export interface PrivateRedisOptions {
  /** Without it a new folder under the system's temporary one, removed again by `stop`. */
  dataDir?: string;
  port?: number;
  appendonly?: boolean;
  unixSocket?: boolean;
  /** More arguments for the server. */
  args?: string[];
  env?: NodeJS.ProcessEnv;
  log?: (line: string) => void;
  allowInstall?: boolean;
}

export interface PrivateRedis {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly version: string;
  readonly dataDir: string;
  readonly socketPath: string | undefined;
  /** SIGKILL; returns when the process is gone. */
  kill9(): Promise<void>;
  /** Starts it again on the same port and folder (stopping it softly first when it still runs). */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const PRIVATE_PREFIX = 'remuda-redis-';

export async function ensureRedis(options: EnsureRedisOptions): Promise<RunningRedis> {
  if (options.env.REDIS_URL) return useGivenRedis(options.env.REDIS_URL, options);
  const dataDir = resolve(options.dataDir);
  return withLock(join(dataDir, 'redis.lock'), async () => {
    return (await useRunningRedis(dataDir, options)) ?? (await startOwnRedis(dataDir, options));
  });
}

/** A server for tests: port and folder of its own, ended by `stop`, at exit, or by the next private start. */
export async function startPrivateRedis(options: PrivateRedisOptions = {}): Promise<PrivateRedis> {
  const log = options.log ?? (() => {});
  const env = options.env ?? process.env;
  const binary = await serverBinary({ env, log, allowInstall: options.allowInstall ?? false });
  await sweepAbandoned();
  const dataDir = options.dataDir
    ? resolve(options.dataDir)
    : mkdtempSync(join(realTmpdir(), PRIVATE_PREFIX));
  const start: StartOptions = { ...options, binary, dataDir, log };
  let server = await startRedisProcess(start);
  writeRecord(dataDir, server);
  const forgetExit = stopAtExit(() => server);
  return {
    url: urlOf(server),
    port: server.port,
    version: server.version,
    dataDir,
    socketPath: server.socketPath,
    get pid() {
      return server.pid;
    },
    kill9: () => killRedisProcess(server),
    async restart() {
      await stopRedisProcess(server);
      server = await startRedisProcess({ ...start, port: server.port });
      writeRecord(dataDir, server);
    },
    async stop() {
      forgetExit();
      await stopRedisProcess(server);
      if (options.dataDir) markStopped(dataDir, server);
      else rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Deletes every key that contains `part`: for tests that had to use somebody's database with a prefix of their own. */
export async function deleteKeysContaining(url: string, part: string): Promise<number> {
  const target = parseRedisUrl(url);
  const database = ['SELECT', new URL(url).pathname.slice(1) || '0'];
  let cursor = '0';
  let deleted = 0;
  do {
    const scan = ['SCAN', cursor, 'MATCH', `*${part}*`, 'COUNT', '1000'];
    const [, page] = await askRedis(target, [database, scan], 10_000);
    if (!Array.isArray(page)) throw page instanceof Error ? page : new Error('SCAN gave no page');
    const keys = page[1] as string[];
    if (keys.length > 0) await askRedis(target, [database, ['DEL', ...keys]], 10_000);
    deleted += keys.length;
    cursor = String(page[0]);
  } while (cursor !== '0');
  return deleted;
}

async function useGivenRedis(url: string, options: EnsureRedisOptions): Promise<RunningRedis> {
  const shown = url.replace(/^(\w+:\/\/)[^?]*@/, '$1***@');
  const fail = (reason: string) =>
    new Error(
      `REDIS_URL is ${shown}, but it cannot be used: ${reason}.\n` +
        'Start that server or correct REDIS_URL. Without REDIS_URL a local server is started.',
    );
  // Several servers: the apps find their way among them, and say so where they do not.
  if (/^rediss?\+(sentinel|cluster):/.test(url))
    return { url, owned: false, version: 'not asked', stop: async () => {} };
  let target: RedisTarget;
  try {
    target = parseRedisUrl(url, options.env);
  } catch (error) {
    throw fail((error as Error).message);
  }
  const timeoutMs = options.connectTimeoutMs ?? 5_000;
  const answer = await untilAnswered(target, timeoutMs, options.log);
  if (answer.state === 'ready') return { url, owned: false, version: answer.version, stop: async () => {} };
  if (answer.state === 'refused') throw fail(`the server answered: ${answer.reason}`);
  const reason = answer.state === 'loading' ? 'it is still loading its data' : answer.reason;
  throw fail(`PING was tried for ${timeoutMs / 1_000} s: ${reason}`);
}

/** The server that `redis.json` names: shared while its owner lives, taken over when the owner is gone. */
async function useRunningRedis(
  dataDir: string,
  options: EnsureRedisOptions,
): Promise<RunningRedis | undefined> {
  const record = readRecord(dataDir);
  if (!record || !isRunning(record)) return undefined;
  const answer = await untilAnswered({ host: '127.0.0.1', port: record.port }, 5_000, options.log);
  const answers = answer.state === 'ready' && answer.pid === record.pid;
  const ownerLives = isRunning(record.owner);
  if (answers && ownerLives) return shareRunning(record, options);
  if (answers) return takeOver(dataDir, record, options);
  if (ownerLives) {
    throw new Error(
      `The Redis of ${dataDir} (process ${record.pid}, port ${record.port}), started by process ${record.owner.pid}, ` +
        'does not answer. End that process, then start again.',
    );
  }
  options.log(
    `ending a Redis that an earlier run left behind and that does not answer (process ${record.pid})`,
  );
  await stopRedisProcess(record);
  return undefined;
}

function shareRunning(record: RedisRecord, options: EnsureRedisOptions): RunningRedis {
  options.log(`using the Redis that process ${record.owner.pid} started on port ${record.port}`);
  return { ...facts(record), owned: false, stop: async () => {} };
}

function takeOver(dataDir: string, record: RedisRecord, options: EnsureRedisOptions): RunningRedis {
  options.log(`taking over the Redis that an earlier run left behind on port ${record.port}`);
  return own(dataDir, record);
}

async function startOwnRedis(dataDir: string, options: EnsureRedisOptions): Promise<RunningRedis> {
  const binary = await serverBinary(options);
  dropLog(dataDir);
  const server = await startRedisProcess({
    binary,
    dataDir,
    preferredPort: readRecord(dataDir)?.port,
    appendonly: options.appendonly,
    unixSocket: options.unixSocket,
    log: options.log,
  });
  options.log(`started Redis ${server.version} on 127.0.0.1:${server.port}`);
  return own(dataDir, server);
}

function own(dataDir: string, server: RedisProcess): RunningRedis {
  writeRecord(dataDir, server);
  const forgetExit = stopAtExit(() => server);
  let stopping: Promise<void> | undefined;
  const stop = async () => {
    forgetExit();
    await stopRedisProcess(server);
    markStopped(dataDir, server);
  };
  return {
    ...facts(server),
    owned: true,
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}

function facts(server: RedisProcess) {
  return { url: urlOf(server), version: server.version, pid: server.pid, socketPath: server.socketPath };
}

function urlOf(server: RedisProcess): string {
  return `redis://127.0.0.1:${server.port}`;
}

async function serverBinary(
  options: Pick<EnsureRedisOptions, 'env' | 'log' | 'allowInstall'>,
): Promise<string> {
  const found = findRedisServer(options.env.PATH);
  if (found) return found;
  const obstacle = options.allowInstall ? whyNotInstallable(options.env) : 'installing is switched off';
  if (obstacle) throw noServer(obstacle);
  try {
    return await installRedis(options);
  } catch (error) {
    throw noServer((error as Error).message);
  }
}

function noServer(aptObstacle: string): Error {
  return new Error(
    [
      'Remuda needs a Redis (6.2 or later) and found none. Tried:',
      '  REDIS_URL                                      not set',
      '  redis-server or valkey-server on the PATH      not there',
      `  apt-get install redis-server                   ${aptObstacle}`,
      'Do one of these, then start again:',
      '  Debian, Ubuntu   sudo apt-get update && sudo apt-get install -y redis-server',
      '  macOS            brew install redis',
      '  Docker           docker run -d --name remuda-redis -p 127.0.0.1:6379:6379 redis:7 \\',
      '                     redis-server --appendonly yes --maxmemory-policy noeviction',
      '                   export REDIS_URL=redis://127.0.0.1:6379',
    ].join('\n'),
  );
}

/** Asks until the server is ready or will not have us; a server that is loading gets a minute more. */
async function untilAnswered(
  target: RedisTarget,
  timeoutMs: number,
  log: (line: string) => void,
): Promise<ProbeResult> {
  const begun = Date.now();
  for (let told = false; ; ) {
    const answer = await probeRedis(target, Math.min(timeoutMs, 2_000));
    if (answer.state === 'ready' || answer.state === 'refused') return answer;
    const loading = answer.state === 'loading';
    if (loading && !told) log('Redis is loading its data');
    told ||= loading;
    if (Date.now() - begun > timeoutMs + (loading ? 60_000 : 0)) return answer;
    await sleep(100);
  }
}

/** Private servers whose process was killed hard: end them and remove their folders. */
async function sweepAbandoned(): Promise<void> {
  for (const name of readdirSync(realTmpdir()).filter((entry) => entry.startsWith(PRIVATE_PREFIX))) {
    const dataDir = join(realTmpdir(), name);
    const record = readRecord(dataDir);
    if (!record || isRunning(record.owner)) continue;
    if (isRunning(record)) await killRedisProcess(record).catch(() => {});
    try {
      rmSync(dataDir, { recursive: true, force: true });
    } catch {}
  }
}

function realTmpdir(): string {
  return realpathSync(tmpdir());
}
