import { expect, it } from 'vitest';
import { type Service, ServiceGroup } from './service.js';

function recorder(fails: Record<string, 'start' | 'stop'> = {}) {
  const log: string[] = [];
  const service = (name: string): Service => ({
    name,
    start: async () => {
      if (fails[name] === 'start') throw new Error('port taken');
      log.push(`start ${name}`);
    },
    stop: async () => {
      log.push(`stop ${name}`);
      if (fails[name] === 'stop') throw new Error('stuck');
    },
  });
  return { log, service };
}

it('starts in order and stops in reverse, once', async () => {
  const { log, service } = recorder();
  const group = new ServiceGroup('app', [service('a'), service('b')], () => {});
  await group.start();
  await Promise.all([group.stop(), group.stop()]);
  expect(log).toEqual(['start a', 'start b', 'stop b', 'stop a']);
});

it('a start that fails stops what was started and names who failed', async () => {
  const { log, service } = recorder({ b: 'start' });
  const group = new ServiceGroup('app', [service('a'), service('b'), service('c')], () => {});
  await expect(group.start()).rejects.toThrow('b did not start: port taken');
  expect(log).toEqual(['start a', 'stop a']);
});

it('a stop that fails is told, and does not keep the others running', async () => {
  const { log, service } = recorder({ b: 'stop' });
  const failed: string[] = [];
  const group = new ServiceGroup('app', [service('a'), service('b')], (name) => failed.push(name));
  await group.start();
  await group.stop();
  expect(failed).toEqual(['b']);
  expect(log).toEqual(['start a', 'start b', 'stop b', 'stop a']);
});
