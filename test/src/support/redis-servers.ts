/**
 * Redis as people run it beyond one plain server: with TLS, with replicas that Sentinels watch, as a Cluster. Real
 * servers, each with a port and a folder of its own; stop() ends those that a test has killed or suspended, too.
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type PrivateRedis, startPrivateRedis } from '@remuda/infra/redis-launcher';
import { askRedis, type Reply } from '@remuda/infra/redis-probe';
import { findRedisServer } from '@remuda/infra/redis-process';

/** Only bounds a failing test. */
const PATIENCE_MS = 60_000;

export async function ask(port: number, ...command: string[]): Promise<Reply> {
  const [reply] = await askRedis({ host: '127.0.0.1', port }, [command], 10_000);
  if (reply instanceof Error) throw reply;
  return reply as Reply;
}

export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(50)) {
    if (await holds().catch(() => false)) return;
  }
  throw new Error(`not within ${PATIENCE_MS} ms: ${what}`);
}

/** A port that nobody has at this moment, and whose partner of the Cluster bus nobody has either. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = await portOf(0);
    if (port > 50_000) continue;
    const bus = await portOf(port + 10_000).catch(() => 0);
    if (bus !== 0) return port;
  }
}

function portOf(wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(wanted, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

export interface Certificates {
  folder: string;
  ca: string;
  serverCert: string;
  serverKey: string;
  clientCert: string;
  clientKey: string;
}

/** An authority, and what it has signed for 127.0.0.1 and for a client; good for a day. */
export function makeCertificates(): Certificates {
  const folder = mkdtempSync(join(tmpdir(), 'remuda-tls-'));
  const file = (name: string): string => join(folder, name);
  const openssl = (...args: string[]): void => {
    execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  };
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl(
    'req',
    '-x509',
    ...key,
    '-keyout',
    'ca.key',
    '-out',
    'ca.crt',
    '-days',
    '1',
    '-subj',
    '/CN=test authority',
  );
  writeFileSync(file('server.ext'), 'subjectAltName=IP:127.0.0.1,DNS:localhost\n');
  writeFileSync(file('client.ext'), 'extendedKeyUsage=clientAuth\n');
  for (const who of ['server', 'client']) {
    openssl('req', ...key, '-keyout', `${who}.key`, '-out', `${who}.csr`, '-subj', `/CN=${who}`);
    openssl(
      ...['x509', '-req', '-in', `${who}.csr`, '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial'],
      ...['-out', `${who}.crt`, '-days', '1', '-extfile', `${who}.ext`],
    );
  }
  return {
    folder,
    ca: file('ca.crt'),
    ...{ serverCert: file('server.crt'), serverKey: file('server.key') },
    ...{ clientCert: file('client.crt'), clientKey: file('client.key') },
  };
}

export interface TlsRedis {
  server: PrivateRedis;
  /** Port that speaks TLS alone. */
  port: number;
  certificates: Certificates;
  stop(): Promise<void>;
}

/** A server that speaks TLS and asks for a client's certificate. */
export async function startTlsRedis(): Promise<TlsRedis> {
  const certificates = makeCertificates();
  const port = await freePort();
  const { ca, serverCert, serverKey } = certificates;
  const files = ['--tls-cert-file', serverCert, '--tls-key-file', serverKey, '--tls-ca-cert-file', ca];
  const server = await startPrivateRedis({ args: ['--tls-port', String(port), ...files] });
  return {
    server,
    port,
    certificates,
    async stop() {
      await server.stop();
      rmSync(certificates.folder, { recursive: true });
    },
  };
}

export interface Watched {
  /** First the master, then its replica. */
  servers: PrivateRedis[];
  /** redis+sentinel:// */
  url: string;
  /** Port of the master, as the Sentinels say. */
  master(): Promise<number>;
  stop(): Promise<void>;
}

const MASTER = 'main';

/** A master with a replica, and three Sentinels that watch them. @param args more arguments for both servers */
export async function startWatched(args: string[] = []): Promise<Watched> {
  const master = await startPrivateRedis({ args });
  const replica = await startPrivateRedis({ args: [...args, '--replicaof', `127.0.0.1 ${master.port}`] });
  await until('the replica follows', async () =>
    String(await ask(replica.port, 'INFO')).includes('link_status:up'),
  );
  const sentinels = await Promise.all([0, 1, 2].map(() => startSentinel(master.port)));
  const [first] = sentinels as [Sentinel];
  const known = async (): Promise<string> => String(await ask(first.port, 'INFO', 'sentinel'));
  await until('the Sentinels know of each other', async () => /slaves=1,sentinels=3/.test(await known()));
  return {
    servers: [master, replica],
    url: `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${MASTER}`,
    async master() {
      const [, port] = (await ask(first.port, 'SENTINEL', 'get-master-addr-by-name', MASTER)) as string[];
      return Number(port);
    },
    async stop() {
      for (const server of [...sentinels, master, replica]) await server.stop();
    },
  };
}

interface Sentinel {
  port: number;
  stop(): Promise<void>;
}

async function startSentinel(masterPort: number): Promise<Sentinel> {
  const folder = mkdtempSync(join(tmpdir(), 'remuda-sentinel-'));
  const port = await freePort();
  const config = join(folder, 'sentinel.conf');
  writeFileSync(
    config,
    [
      `port ${port}`,
      'bind 127.0.0.1',
      `sentinel monitor ${MASTER} 127.0.0.1 ${masterPort} 2`,
      `sentinel down-after-milliseconds ${MASTER} 1000`,
      `sentinel failover-timeout ${MASTER} 5000`,
      '',
    ].join('\n'),
  );
  const binary = findRedisServer(process.env.PATH) as string;
  const child = spawn(binary, [config, '--sentinel'], { cwd: folder, stdio: 'ignore' });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  await until('a Sentinel answers', async () => (await ask(port, 'PING')) === 'PONG');
  return {
    port,
    async stop() {
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}

export interface TestCluster {
  nodes: PrivateRedis[];
  /** redis+cluster:// */
  url: string;
  stop(): Promise<void>;
}

/** Three masters with a third of the slots each. */
export async function startCluster(): Promise<TestCluster> {
  const nodes = await Promise.all(
    [0, 1, 2].map(async () =>
      startPrivateRedis({ port: await freePort(), args: ['--cluster-enabled', 'yes'] }),
    ),
  );
  const ports = nodes.map(({ port }) => port);
  const bounds = [0, 5_461, 10_923, 16_384];
  for (const [i, port] of ports.entries()) {
    await ask(port, 'CLUSTER', 'ADDSLOTSRANGE', String(bounds[i]), String((bounds[i + 1] as number) - 1));
    await ask(port, 'CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1));
  }
  for (const port of ports) {
    for (const other of ports)
      if (other !== port) await ask(port, 'CLUSTER', 'MEET', '127.0.0.1', String(other));
  }
  for (const port of ports)
    await until('the Cluster stands', async () => {
      const info = String(await ask(port, 'CLUSTER', 'INFO'));
      return info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3');
    });
  return {
    nodes,
    url: `redis+cluster://${ports.map((port) => `127.0.0.1:${port}`).join(',')}`,
    async stop() {
      for (const node of nodes) await node.stop();
    },
  };
}
