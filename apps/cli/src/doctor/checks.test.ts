import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Device } from '@remuda/core/devices/machine';
import { probeMachine } from '@remuda/core/devices/probe';
import { afterEach, describe, expect, it } from 'vitest';
import { findingLines } from '../commands/doctor.js';
import { setup } from '../fake-api.fixture.js';
import { recordingTerminal } from '../terminal/recording-terminal.fixture.js';
import { checkApi } from './check-api.js';
import { checkMachine } from './check-machine.js';
import { checkNode } from './check-programs.js';
import { checkProviders } from './check-providers.js';
import { checkRedis, judgeInfo } from './check-redis.js';
import { checkRepository, loadedText } from './check-repository.js';
import { type Finding, fail, ok } from './finding.js';

const GB = 2 ** 30;

function info(changes: Record<string, string | number> = {}): string {
  const fields = {
    redis_version: '7.0.15',
    maxmemory_policy: 'noeviction',
    maxmemory: 0,
    used_memory: 1,
    total_system_memory: 8 * GB,
    aof_enabled: 1,
    aof_last_write_status: 'ok',
    ...changes,
  };
  return Object.entries(fields)
    .map(([name, value]) => `${name}:${value}\r\n`)
    .join('');
}

/** check → status */
const statuses = (findings: readonly Finding[]) =>
  Object.fromEntries(findings.map(({ check, status }) => [check, status]));

let folder: string | undefined;
afterEach(async () => {
  if (folder) await rm(folder, { recursive: true });
  folder = undefined;
});

async function newFolder(): Promise<string> {
  folder = await mkdtemp(join(tmpdir(), 'remuda-checks-'));
  return folder;
}

describe('doctor on Redis', () => {
  it('finds nothing wrong with a server as `remuda up` starts it', () => {
    expect(new Set(judgeInfo(info(), 'redis://x').map(({ status }) => status))).toEqual(new Set(['ok']));
  });

  it.each<[string, Record<string, string | number>, string, string]>([
    ['an old version', { redis_version: '5.0.7' }, 'redis', 'fail'],
    ['a policy that evicts', { maxmemory_policy: 'allkeys-lru' }, 'redis policy', 'fail'],
    ['no append-only file', { aof_enabled: 0 }, 'redis AOF', 'warn'],
    ['a failed write', { aof_last_write_status: 'err' }, 'redis AOF', 'fail'],
    ['75 % of maxmemory', { maxmemory: 4 * GB, used_memory: 3 * GB }, 'redis memory', 'warn'],
    ['80 % of maxmemory', { maxmemory: 10 * GB, used_memory: 8 * GB }, 'redis memory', 'fail'],
    ['a machine nearly full', { used_memory: 7 * GB }, 'redis memory', 'warn'],
  ])('tells of %s, with the remedy', (_, changes, check, status) => {
    const findings = judgeInfo(info(changes), 'redis://x');
    expect(statuses(findings)).toMatchObject({ [check]: status });
    expect(findings.filter((finding) => finding.status !== 'ok')).toEqual([
      expect.objectContaining({ check, remedy: expect.any(String) }),
    ]);
  });

  it('fails on a REDIS_URL that does not answer, and hides its password', async () => {
    const [finding] = await checkRedis({
      given: 'redis://user:secret@127.0.0.1:1',
      redisFolder: '/nowhere',
      env: {},
    });
    expect(finding).toMatchObject({
      status: 'fail',
      detail: expect.stringContaining('redis://***@127.0.0.1:1'),
    });
    expect(JSON.stringify(finding)).not.toContain('secret');
  });

  it('is content when a server can be started', async () => {
    const bin = await newFolder();
    await writeFile(join(bin, 'redis-server'), '', { mode: 0o755 });
    const [finding] = await checkRedis({ given: undefined, redisFolder: '/nowhere', env: { PATH: bin } });
    expect(finding).toEqual(ok('redis', `none is running; \`remuda up\` starts ${bin}/redis-server`));
  });
});

describe('doctor on the rest', () => {
  it.each([
    ['18.20.0', 'fail'],
    ['20.18.9', 'fail'],
    ['20.19.0', 'ok'],
    ['24.1.0', 'ok'],
  ])('takes Node %s as %s', (version, status) => expect(checkNode(version).status).toBe(status));

  it('lists the devices, and passes on what their probe noticed', async () => {
    const machine = await probeMachine();
    const [cpu] = machine.devices as [Device];
    const findings = await checkMachine(async () => ({
      ...machine,
      cores: 8,
      usableCores: 2,
      memoryFreeBytes: 3 * GB,
      instructionSets: ['avx2', 'fma'],
      devices: [{ ...cpu, description: 'a processor' }],
      notices: ['nvidia-smi is there and failed: no driver'],
    }));
    expect(findings[0]).toEqual(
      ok('device cpu', "a processor (of 8: the container's limit), 3.0 GiB free; avx2 fma"),
    );
    expect(findings[1]).toMatchObject({
      status: 'warn',
      detail: 'nvidia-smi is there and failed: no driver',
    });
  });

  it('tells what is known of a GPU, and that its provider does not load', async () => {
    const machine = await probeMachine();
    const [cpu] = machine.devices as [Device];
    const gpu: Device = {
      ...cpu,
      device: 'cuda:0',
      device_class: 'cuda',
      description: 'Tesla T4, 15.0 GiB memory, driver 550.54.15',
      memory_free_bytes: 14 * GB,
      utilisation: 0.07,
      compute_capability: 7.5,
      uuid: 'GPU-1',
    };
    const withGpu = { ...machine, devices: [cpu, gpu], notices: [] };
    expect((await checkMachine(async () => withGpu))[1]).toEqual(
      ok(
        'device cuda:0',
        'Tesla T4, 15.0 GiB memory, driver 550.54.15, 14.0 GiB free, 7 % busy, compute capability 7.5, GPU-1',
      ),
    );
    const probe = async () => [
      { provider: 'cpu', ok: true, reason: null, ran: 'cpu' },
      { provider: 'cuda', ok: false, reason: 'libcublasLt.so.12 is missing', ran: null },
      { provider: 'coreml', ok: false, reason: 'this build has none', ran: null },
    ];
    expect(await checkProviders(withGpu, probe)).toEqual([
      ok('providers', 'cpu loads'),
      expect.objectContaining({
        status: 'warn',
        check: 'provider cuda',
        detail: 'there is a device for it, but: libcublasLt.so.12 is missing',
        remedy: expect.stringContaining('docs/devices.md'),
      }),
    ]);
  });

  it('tells each fault of the model repository, and counts what can be served', async () => {
    const models = await newFolder();
    await mkdir(join(models, 'good/1'), { recursive: true });
    await writeFile(join(models, 'good/model.yaml'), 'harness: onnx\n');
    await writeFile(join(models, 'good/1/model.onnx'), 'x');
    await mkdir(join(models, 'good/2'));
    await mkdir(join(models, 'typo/1'), { recursive: true });
    await writeFile(join(models, 'typo/model.yaml'), 'harness: onnx\nmax_batch: 4\n');
    const findings = await checkRepository(models, { load: false });
    expect(findings[0]).toMatchObject({ status: 'ok', detail: expect.stringContaining('1 model in') });
    // A second version that is not complete hinders nobody yet.
    expect(statuses(findings)).toMatchObject({ 'model good': 'warn', 'model typo': 'fail' });
    expect(findings.find(({ check }) => check === 'model typo')?.detail).toMatch(
      /typo\/model\.yaml:2: .*max_batch/,
    );
  });

  it('says how many of the models --load could load', () => {
    expect([loadedText(6, 0), loadedText(6, 2)]).toEqual([', each loaded', ', 4 of them loaded']);
  });

  it('fails on a repository that is not there', async () => {
    const [finding] = await checkRepository('/nowhere/models', { load: false });
    expect(finding).toMatchObject({ status: 'fail', detail: expect.stringContaining('/nowhere/models') });
  });

  it('warns only when no API runs', async () => {
    expect(await checkApi('http://127.0.0.1:1')).toEqual([
      expect.objectContaining({ check: 'api', status: 'warn' }),
    ]);
  });

  it('tells an API that asks for a key from one that is not there', async () => {
    const ready = { status: 'ok', checks: {} };
    const problem = {
      ...{ type: 'urn:remuda:error:unauthorized', title: 'The call has no valid API key.', status: 401 },
      ...{ detail: 'this needs an API key', code: 'unauthorized', retryable: false },
    };
    const { url } = await setup({
      'GET /readyz': { body: ready },
      'GET /v1/fleet': { status: 401, body: problem },
    });
    expect(await checkApi(url)).toEqual([
      expect.objectContaining({ check: 'api', status: 'ok' }),
      expect.objectContaining({
        check: 'workers',
        status: 'fail',
        detail: expect.stringContaining('this needs an API key'),
      }),
    ]);
  });

  it('shows each finding on a line, its remedy below, and the counts at the end', () => {
    const findings = [ok('node', 'Node 24'), fail('redis policy', 'evicts', 'Set it.')];
    expect(findingLines(findings, recordingTerminal())).toEqual([
      'ok    node          Node 24',
      'fail  redis policy  evicts',
      '                    → Set it.',
      '',
      '1 ok, 0 warnings, 1 failed',
    ]);
  });
});
