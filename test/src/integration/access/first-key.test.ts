/** From nothing to a server that other machines reach: the first key by the command line, straight into Redis. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Rig, setup } from '../http/rig.js';

const remuda = fileURLToPath(new URL('../../../../apps/cli/bin/remuda.mjs', import.meta.url));

let rig: Rig;
beforeAll(async () => {
  rig = await setup();
});
afterAll(() => rig.close());

async function run(
  args: string[],
  env: Record<string, string> = {},
): Promise<{ out: string; notes: string }> {
  const { PATH = '' } = process.env;
  const options = { env: { PATH, REMUDA_KEY_PREFIX: rig.keys.space.prefix, ...env } };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [remuda, ...args], options);
  return { out: stdout.trim(), notes: stderr };
}

it('is made with all scopes, lets its owner in over HTTP, and stands in the audit log', async () => {
  const REDIS_URL = process.env.REMUDA_TEST_REDIS_URL as string;
  const { out: secret, notes } = await run(['keys', 'create', 'first', '--redis'], { REDIS_URL });
  expect(secret).toMatch(/^rmd_[a-z0-9]{12}_[A-Za-z0-9]{43}$/);
  expect(notes).toContain('may submit, read, admin');
  const env = { REMUDA_API_HOST: '0.0.0.0', REMUDA_KEY_PREFIX: rig.keys.space.prefix };
  const outside = await setup({ env });
  try {
    const url = outside.url.replace('0.0.0.0', '127.0.0.1');
    const asked = { REMUDA_URL: url, REMUDA_API_KEY: secret };
    expect((await run(['keys', 'list'], asked)).out).toContain('first');
    expect((await run(['audit'], asked)).out).toContain('remuda keys create --redis');
    await expect(run(['keys', 'list'], { REMUDA_URL: url })).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('unauthorized (401)'),
    });
    const second = (await run(['keys', 'create', 'second', '--scopes', 'read'], asked)).out;
    await expect(run(['keys', 'list'], { ...asked, REMUDA_API_KEY: second })).rejects.toMatchObject({
      stderr: expect.stringContaining('the scope "admin"'),
    });
  } finally {
    await outside.close();
  }
});

it('is checked like any other, and says when Redis is not there', async () => {
  const REDIS_URL = process.env.REMUDA_TEST_REDIS_URL as string;
  await expect(
    run(['keys', 'create', 'x', '--redis', '--scopes', 'root', '--tenant', 'A B'], { REDIS_URL }),
  ).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/tenant: expected .*\n +scopes\[0\]: expected /),
  });
  await expect(
    run(['keys', 'create', 'x', '--redis', '--expires', '2020-01-01'], { REDIS_URL }),
  ).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('expires_at: expected a time after now'),
  });
  await expect(
    run(['keys', 'create', 'x', '--redis'], { REDIS_URL: 'redis://127.0.0.1:1' }),
  ).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('could not be written into Redis') });
});
