/** Entry of the runner's process: the runner with the real store. */
import './native-telemetry.js';
import { createRowReader } from '../bulk/input/row-reader.js';
import { mapRows } from '../bulk/mapping/map-rows.js';
import { chooseOutputs } from '../bulk/output/output-choice.js';
import { Keys } from '../store/keys.js';
import { PayloadReader } from '../store/payload-reader.js';
import { closeRedis, connectRedis, isCluster } from '../store/redis.js';
import { RequestStore } from '../store/request-store.js';
import { serveRunner } from './runner-child.js';

serveRunner(
  async ({ url, keyspace }, { memory, log }) => {
    const onError = (error: Error): void => log(error.message);
    const redis = connectRedis({ url, role: 'runner', name: `runner-${process.pid}`, onError });
    const keys = new Keys(keyspace);
    // A reader has one connection, and the keys of a Cluster lie behind several.
    if (isCluster(redis)) return { store: new RequestStore(redis, keys), close: () => closeRedis(redis) };
    const payloads = new PayloadReader({ url, name: `payloads-${process.pid}`, memory, onError });
    return {
      store: new RequestStore(redis, keys, payloads),
      close: () => {
        closeRedis(redis);
        payloads.close();
      },
    };
  },
  () => ({ rows: createRowReader(), map: mapRows, choose: chooseOutputs }),
);
