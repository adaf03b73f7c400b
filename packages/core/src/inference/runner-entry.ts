/** Entry of the runner's process: the runner with the real store. */
import './native-telemetry.js';
import { Keys } from '../store/keys.js';
import { closeRedis, connectRedis } from '../store/redis.js';
import { RequestStore } from '../store/request-store.js';
import { serveRunner } from './runner-child.js';

serveRunner(async ({ url, keyspace }, log) => {
  const redis = connectRedis({
    url,
    role: 'runner',
    name: `runner-${process.pid}`,
    onError: (error) => log(error.message),
  });
  return { store: new RequestStore(redis, new Keys(keyspace)), close: () => closeRedis(redis) };
});
