import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { machineStatus, readRecordedMachine } from './machine.js';
import { MachineWatch } from './machine-watch.js';
import { probeMachine } from './probe.js';
import { parseProviderSwitch } from './provider-switch.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'remuda-machine-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function file(content: unknown): Promise<string> {
  const path = join(folder, 'machine.json');
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

describe('a recorded machine', () => {
  it('is what the heartbeat of a worker said of it', async () => {
    const machine = await probeMachine();
    const entry = { worker_id: 'w1', rss_bytes: 1, ...machineStatus(machine), devices: machine.devices };
    const played = await readRecordedMachine(await file(entry), 5);
    expect(machineStatus(played)).toEqual(machineStatus(machine));
    expect(played.devices).toEqual(machine.devices);
    expect(played.probedAt).toBe(5);
  });

  it('needs no more of a device than its name, class and description, and stays as it is', async () => {
    const gpu = { device: 'cuda:0', device_class: 'cuda', description: 'pretended' };
    const recorded = await file({ cpu: null, cores: 4, memory_bytes: 1e9, devices: [gpu] });
    const watch = await MachineWatch.open({
      recorded,
      clock: { now: () => 0, after: () => () => {} },
      onError: (error) => expect.unreachable(error.message),
    });
    expect(watch.machine).toMatchObject({ usableCores: 4, devices: [{ ...gpu, memory_free_bytes: null }] });
    expect(await watch.look()).toBe(watch.machine);
  });

  it.each([['{'], [{ cores: 'four' }]])('that cannot be read is named: %j', async (content) => {
    const path = await file(content);
    await expect(readRecordedMachine(path, 0)).rejects.toThrow(`${path} is not a recorded machine`);
  });
});

describe('the provider switch', () => {
  it('says what runs what is meant for others', () => {
    expect(parseProviderSwitch('cuda=cpu, tensorrt=cpu')).toEqual({ cuda: 'cpu', tensorrt: 'cpu' });
    expect(parseProviderSwitch('')).toEqual({});
  });

  it.each(['cuda', 'cuda=gpu', 'cuda=cpu=cpu'])('refuses %s', (text) =>
    expect(() => parseProviderSwitch(text)).toThrow('write cuda=cpu'),
  );
});
