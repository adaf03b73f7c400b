/** Which servers a Redis URL leads to: itself, the master that Sentinels name, or each that was named of a Cluster. */
import { parseRedisAddress, type RedisAddress } from '@remuda/core/store/redis-address';
import { askRedis, type RedisTarget } from '@remuda/infra/redis-probe';

const ANSWER_MS = 3_000;

/** @throws Error where the URL is not right, or no Sentinel knows of a master */
export async function redisTargets(url: string): Promise<RedisTarget[]> {
  const address = parseRedisAddress(url);
  if (address.kind === 'socket') {
    const { path, username, password } = address;
    return [{ host: '', port: 0, socketPath: path, username, password }];
  }
  const { username, password, tls } = address;
  const login = { username, password, tls };
  if (address.kind === 'single') return [{ host: address.host, port: address.port, ...login }];
  if (address.kind === 'cluster') return address.nodes.map((node) => ({ ...node, ...login }));
  return [{ ...(await masterOf(address)), ...login }];
}

async function masterOf({
  sentinels,
  master,
  tls,
  sentinelUsername: username,
  sentinelPassword: password,
}: Extract<RedisAddress, { kind: 'sentinel' }>): Promise<{ host: string; port: number }> {
  let said = '';
  for (const sentinel of sentinels) {
    const question = [['SENTINEL', 'get-master-addr-by-name', master]];
    const answers = await askRedis({ ...sentinel, username, password, tls }, question, ANSWER_MS).catch(
      (error: Error) => [error.message],
    );
    const [found] = answers;
    if (Array.isArray(found)) return { host: String(found[0]), port: Number(found[1]) };
    said = `${sentinel.host}:${sentinel.port} ${typeof found === 'string' ? `said: ${found}` : 'knows no such master'}`;
  }
  throw new Error(`no Sentinel names a master called "${master}"; ${said}`);
}
