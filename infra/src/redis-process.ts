// Owns one redis-server process: where it listens, that it is ready, that it ends. Invariants: it listens on
// 127.0.0.1 only, keeps an append-only file, evicts nothing, and `redis.json` in its folder names it and its owner
// for as long as it runs, so that a later start can find what a killed owner left behind.
import { spawn } from 'node:child_process';
import {
  accessSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isRunning, type ProcessIdentity, processStarted, thisProcess } from '../setup/process-lock.mjs';
import { probeRedis } from './redis-probe.js';

export interface RedisProcess extends ProcessIdentity {
  port: number;
  version: string;
  socketPath?: string;
}

export interface RedisRecord extends RedisProcess {
  owner: ProcessIdentity;
}

export interface StartOptions {
  binary: string;
  dataDir: string;
  /** Fixed port; without it a free one is taken. */
  port?: number;
  /** Port to take when it happens to be free, so that the URL stays the same from start to start. */
  preferredPort?: number;
  appendonly?: boolean;
  unixSocket?: boolean;
  /** More arguments for the server, after ours. */
  args?: string[];
  log?: (line: string) => void;
}

const START_TIMEOUT_MS = 30_000;
const LOADING_TIMEOUT_MS = 10 * 60_000;
const SOFT_STOP_MS = 10_000;
const START_ATTEMPTS = 5;

export function findRedisServer(path: string | undefined): string | undefined {
  for (const name of ['redis-server', 'valkey-server']) {
    for (const folder of (path ?? '').split(delimiter).filter(Boolean)) {
      const candidate = join(folder, name);
      try {
        accessSync(candidate, constants.X_OK);
        return candidate;
      } catch {}
    }
  }
  return undefined;
}

/** Starts the server and returns when it answers PING; another port is tried when somebody was faster. */
export async function startRedisProcess(options: StartOptions): Promise<RedisProcess> {
  mkdirSync(options.dataDir, { recursive: true });
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort(attempt === 1 ? options.preferredPort : undefined));
    const outcome = await tryStart(options, port);
    if ('version' in outcome) return outcome;
    const portTaken = /Address already in use/i.test(outcome.log);
    if (!portTaken || options.port !== undefined || attempt === START_ATTEMPTS) {
      throw new Error(`${options.binary} did not start on port ${port}: ${outcome.failure}\n${outcome.log}`);
    }
  }
}

/** SIGTERM, a wait (Redis flushes its append-only file), SIGKILL. Safe when the process is already gone. */
export async function stopRedisProcess(server: ProcessIdentity): Promise<void> {
  signal(server, 'SIGTERM');
  // A suspended process would not see it.
  signal(server, 'SIGCONT');
  if (await untilGone(server, SOFT_STOP_MS)) return;
  await killRedisProcess(server);
}

export async function killRedisProcess(server: ProcessIdentity): Promise<void> {
  signal(server, 'SIGKILL');
  if (!(await untilGone(server, SOFT_STOP_MS))) throw new Error(`process ${server.pid} survived SIGKILL`);
}

/** When this process exits without a stop (process.exit, an uncaught error), its server must not stay. */
export function stopAtExit(current: () => ProcessIdentity): () => void {
  const onExit = () => signal(current(), 'SIGTERM');
  process.once('exit', onExit);
  return () => process.off('exit', onExit);
}

export function readRecord(dataDir: string): RedisRecord | undefined {
  try {
    return JSON.parse(readFileSync(recordPath(dataDir), 'utf8'));
  } catch {
    return undefined;
  }
}

export function writeRecord(dataDir: string, server: RedisProcess): void {
  const draft = `${recordPath(dataDir)}.${process.pid}`;
  writeFileSync(draft, JSON.stringify({ ...server, owner: thisProcess() } satisfies RedisRecord));
  renameSync(draft, recordPath(dataDir));
}

/** The port stays on record: the next start takes it again when it is free. */
export function markStopped(dataDir: string, server: RedisProcess): void {
  if (readRecord(dataDir)?.pid === server.pid)
    writeRecord(dataDir, { ...server, pid: 0, started: undefined });
}

async function tryStart(
  options: StartOptions,
  port: number,
): Promise<RedisProcess | { failure: string; log: string }> {
  const socketPath = options.unixSocket ? socketPathFor(options.dataDir, port) : undefined;
  const logPath = join(options.dataDir, 'redis.log');
  const before = readLog(logPath).length;
  const child = spawnServer(options, serverArguments(options, port, socketPath), logPath);
  let ended: string | undefined;
  child.once('error', (error) => {
    ended = error.message;
  });
  child.once('exit', (code, name) => {
    ended = `it ended with ${name ?? `code ${code}`}`;
  });
  const identity = { pid: child.pid ?? 0, started: processStarted(child.pid ?? 0) };
  try {
    const version = await untilReady({ port, pid: identity.pid, ended: () => ended, log: options.log });
    return { ...identity, port, version, socketPath };
  } catch (error) {
    signal(identity, 'SIGKILL');
    return { failure: (error as Error).message, log: readLog(logPath).slice(before).trim().slice(-2_000) };
  }
}

function serverArguments(options: StartOptions, port: number, socketPath: string | undefined): string[] {
  return [
    ['--port', String(port), '--bind', '127.0.0.1', '--dir', options.dataDir, '--daemonize', 'no'],
    ['--appendonly', options.appendonly === false ? 'no' : 'yes', '--appendfsync', 'everysec'],
    ['--maxmemory-policy', 'noeviction', '--save', ''],
    socketPath ? ['--unixsocket', socketPath, '--unixsocketperm', '700'] : [],
    options.args ?? [],
  ].flat();
}

/**
 * Detached: a group of its own, so the terminal's Ctrl-C reaches its users first. Output goes to a file and not to
 * a pipe, which would break when the owner dies. LC_ALL: Redis 7 refuses to start under an unknown locale.
 */
function spawnServer(options: StartOptions, args: string[], logPath: string) {
  const output = openSync(logPath, 'a');
  try {
    const child = spawn(options.binary, args, {
      cwd: options.dataDir,
      detached: true,
      stdio: ['ignore', output, output],
      env: { ...process.env, LC_ALL: 'C' },
    });
    child.unref();
    return child;
  } finally {
    closeSync(output);
  }
}

/** Ready only when the answer comes from our own process: another server may have won the race for the port. */
async function untilReady(wait: {
  port: number;
  pid: number;
  ended: () => string | undefined;
  log?: (line: string) => void;
}): Promise<string> {
  const begun = Date.now();
  let lastAnswer = 'no answer';
  let toldAt = begun;
  for (let loading = false; ; ) {
    const ended = wait.ended();
    if (ended) throw new Error(ended);
    const answer = await probeRedis({ host: '127.0.0.1', port: wait.port });
    const ours = 'pid' in answer && answer.pid === wait.pid;
    if (ours && answer.state === 'ready') return answer.version;
    if (answer.state === 'refused') throw new Error(answer.reason);
    loading = ours && answer.state === 'loading';
    lastAnswer = 'reason' in answer ? answer.reason : answer.state;
    const now = Date.now();
    if (now - begun > (loading ? LOADING_TIMEOUT_MS : START_TIMEOUT_MS))
      throw new Error(`not ready: ${lastAnswer}`);
    if (loading && now - toldAt > 2_000) {
      toldAt = now;
      wait.log?.(`Redis is loading its data (${Math.round((now - begun) / 1_000)} s)`);
    }
    await sleep(now - begun < 500 ? 10 : 50);
  }
}

async function untilGone(server: ProcessIdentity, timeoutMs: number): Promise<boolean> {
  const deadline = Date.now() + timeoutMs;
  while (isRunning(server)) {
    if (Date.now() > deadline) return false;
    await sleep(10);
  }
  return true;
}

function signal(server: ProcessIdentity, name: NodeJS.Signals): void {
  if (!isRunning(server)) return;
  try {
    process.kill(server.pid, name);
  } catch {}
}

/**
 * Below the range that the system uses for outgoing connections (32768 and up): there, a client that reconnects to a
 * killed server's port may be given that very port as its own, and the restarted server could not bind it.
 */
async function freePort(preferred: number | undefined): Promise<number> {
  if (preferred && (await canListen(preferred))) return preferred;
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = 15_000 + Math.floor(Math.random() * 17_000);
    if (await canListen(port)) return port;
  }
  throw new Error('found no free port on 127.0.0.1 between 15000 and 32000');
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** A socket's path may have 104 bytes at most (macOS; 108 on Linux). */
function socketPathFor(dataDir: string, port: number): string {
  const inside = join(dataDir, 'redis.sock');
  return Buffer.byteLength(inside) < 100 ? inside : join(tmpdir(), `remuda-redis-${port}.sock`);
}

function recordPath(dataDir: string): string {
  return join(dataDir, 'redis.json');
}

function readLog(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

export function dropLog(dataDir: string): void {
  rmSync(join(dataDir, 'redis.log'), { force: true });
}
