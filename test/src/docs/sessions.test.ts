/** What the pages show is what happens: their sessions run against a real fleet, and files they show are real files. */
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ModelSummary } from '@remuda/schemas';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Fleet } from '../support/fleet.js';
import { fencesOf, pages, readPage, root, tableOf } from './documents.js';
import { matches, run, stepsOf } from './session.js';

/** Bundled models that the sessions use; the others would only cost time to load. */
const BUNDLED = ['text-direction', 'text-recognition'];
const EXAMPLES = readdirSync(join(root, 'test/examples/models'));

let folder: string;
let fleet: Fleet;
let path: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'remuda-docs-'));
  const models = join(folder, 'models');
  mkdirSync(models);
  for (const name of BUNDLED) symlinkSync(join(root, 'models', name), join(models, name));
  for (const name of EXAMPLES)
    cpSync(join(root, 'test/examples/models', name), join(models, name), { recursive: true });
  path = `${commandFolder(folder)}:${process.env.PATH}`;
  const env = { REMUDA_WORKER_INSTANCES: '1', REMUDA_WEBHOOK_ALLOW: '127.0.0.1' };
  fleet = await Fleet.start({ models, env });
  await untilSeen([...BUNDLED, ...EXAMPLES].length);
});
afterAll(async () => {
  await fleet?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** A new API says "no live worker" until it has read the first heartbeat that lists them all. */
async function untilSeen(count: number): Promise<void> {
  for (const until = Date.now() + 120_000; Date.now() < until; await sleep(100)) {
    const { body } = await fleet.api.get<{ models: ModelSummary[] }>('/v1/models');
    if (body.models.filter(({ workers }) => workers > 0).length === count) return;
  }
  throw new Error('the API does not see the worker');
}

/** `remuda` and `node` by their names, as the pages call them. */
function commandFolder(inside: string): string {
  const commands = join(inside, 'bin');
  mkdirSync(commands);
  const entry = join(root, 'apps/cli/bin/remuda.mjs');
  const script = `#!/bin/sh\nexec "${process.execPath}" "${entry}" "$@"\n`;
  writeFileSync(join(commands, 'remuda'), script, { mode: 0o755 });
  symlinkSync(process.execPath, join(commands, 'node'));
  return commands;
}

/** The sessions speak to the API with curl, which a bare machine may not have. */
function hasCurl(): boolean {
  try {
    execFileSync('curl', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

describe.skipIf(!hasCurl())('sessions print what the page shows', () => {
  for (const page of pages()) {
    const sessions = fencesOf(readPage(page)).filter(({ info }) => info === 'sh session');
    for (const { line, body } of sessions) {
      it(`${page}:${line}`, async () => {
        for (const { command, expected } of stepsOf(body)) {
          const output = await run(command, { url: fleet.api.url, path });
          if (!matches(expected, output)) expect(`$ ${command}\n${output}`).toBe(`$ ${command}\n${expected}`);
        }
      });
    }
  }
});

describe('a block that shows a file is that file', () => {
  for (const page of pages()) {
    for (const { line, body, file } of fencesOf(readPage(page))) {
      if (file === undefined) continue;
      it(`${page}:${line} ${file}`, () => expect(body).toBe(readFileSync(join(root, file), 'utf8')));
    }
  }
});

describe('the routes of docs/http-api.md', () => {
  it('are those of the API, with the errors that each declares', async () => {
    const { body } = await fleet.api.get<{ paths: Paths }>('/openapi.json');
    const declared = Object.entries(body.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { responses }]) => {
        const errors = Object.keys(responses).filter((status) => Number(status) >= 400);
        return [`\`${method.toUpperCase()} ${path}\``, errors.join(', ')];
      }),
    );
    const written = tableOf(readPage('docs/http-api.md'), 'routes').map(([route, , errors]) => [
      route,
      errors,
    ]);
    expect(written.sort()).toEqual(declared.sort());
  });
});

/** What is read of an OpenAPI document. */
type Paths = Record<string, Record<string, { responses: Record<string, unknown> }>>;

describe('the example models', () => {
  it('are all loaded', async () => {
    const { workers } = await fleet.api.fleet();
    const loaded = workers[0]?.models.map(({ model, state, reason }) => [model, state, reason]);
    expect(loaded?.sort()).toEqual([...BUNDLED, ...EXAMPLES].sort().map((name) => [name, 'ready', null]));
  });

  it('celsius counts in batches along its first axis', async () => {
    const { outputs } = await fleet.api.run('celsius', { inputs: { celsius: [[-40], [0], [100]] } });
    expect(outputs?.fahrenheit?.data).toEqual([-40, 32, 212]);
  });

  it('thermometer reads text, takes a parameter, and lets only what it cannot read fail', async () => {
    const result = await fleet.api.run('thermometer', {
      items: [{ inputs: { reading: ['21.5 °C', '-40'] } }, { inputs: { reading: ['warm'] } }],
      parameters: { decimals: 0 },
    });
    expect(result.status).toBe('partial');
    expect(result.items?.[0]?.outputs?.reading?.data).toEqual(['71 °F', '-40 °F']);
    expect(result.items?.[1]?.error).toMatchObject({ code: 'item_rejected' });
  });

  it('word-counter runs without ONNX', async () => {
    const { outputs, metrics } = await fleet.api.run('word-counter', {
      inputs: { text: ['a horse, a horse', 'wagon'] },
    });
    expect(outputs?.counts).toEqual({ datatype: 'INT32', shape: [2, 2], data: [2, 0, 0, 1] });
    expect(metrics?.provider).toBe('js');
  });
});
