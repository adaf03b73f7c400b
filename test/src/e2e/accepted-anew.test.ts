/** An id that was refused, whose job a worker has already, and that is then accepted. */
import { rmSync } from 'node:fs';
import { JobQueues, type JobTicket } from '@remuda/core/queue/job-queue';
import { closeRedis, connectRedis } from '@remuda/core/store/redis';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { Fleet } from '../support/fleet.js';
import { testModels } from '../support/test-models.js';

let models: string;
let fleet: Fleet | undefined;

beforeAll(async () => {
  models = await testModels();
});
afterEach(async () => {
  await fleet?.stop();
  fleet = undefined;
});
afterAll(() => rmSync(models, { recursive: true, force: true }));

it('is run with what was accepted, although the old job stands where the new one should', async () => {
  fleet = await Fleet.start({ models, env: { REMUDA_WORKER_MODELS: 'identity-fp32' } });
  const { api } = fleet;
  const [worker] = fleet.workers;
  worker?.child.kill('SIGSTOP');
  await addJobOfGoneRequest(fleet.redis.url, 'again');
  const x = { datatype: 'FP32', shape: [1, 2], data: [3, 4] };
  await api.submit('identity-fp32', { request_id: 'again', inputs: { x } });
  worker?.child.kill('SIGCONT');
  await api.settle(120);
  expect((await api.result('again')).outputs?.y?.data).toEqual([3, 4]);
  // Not the sweeper, half a minute later.
  expect(fleet.logged('readded')).toEqual([]);
});

for (const [what, gone] of [
  ['asks for a version that nobody has', { version: '99' }],
  ['is too late', { deadline: 1 }],
] as const) {
  it(`is run although the old job ${what}: that says nothing of the new`, async () => {
    fleet = await Fleet.start({ models, env: { REMUDA_WORKER_MODELS: 'identity-fp32' } });
    const { api } = fleet;
    const [worker] = fleet.workers;
    worker?.child.kill('SIGSTOP');
    await addJobOfGoneRequest(fleet.redis.url, 'again', gone);
    const x = { datatype: 'FP32', shape: [1, 2], data: [3, 4] };
    await api.submit('identity-fp32', { request_id: 'again', inputs: { x } });
    worker?.child.kill('SIGCONT');
    await api.settle(120);
    expect((await api.result('again')).outputs?.y?.data).toEqual([3, 4]);
    expect(fleet.logged('readded')).toEqual([]);
  });
}

/** As it stays on the queue when a request is taken back while a worker has its job. */
async function addJobOfGoneRequest(
  url: string,
  requestId: string,
  gone: Partial<JobTicket> = {},
): Promise<void> {
  const redis = connectRedis({ url, role: 'runner', name: 'test', onError: () => {} });
  const queues = new JobQueues({ redis, keyPrefix: 'remuda', onError: () => {} });
  await queues.of({ model: 'identity-fp32', deviceClass: 'cpu', lane: 'interactive' }).add({
    ...{
      requestId,
      nonce: 'gone',
      version: '1',
      traceId: '0'.repeat(32),
      acceptedAt: Date.now(),
      deadline: 0,
    },
    ...{ priority: 5, inline: true, units: [[1, 1, 'group']], tokenBase: 0 },
    ...gone,
  });
  await queues.close();
  closeRedis(redis);
}
