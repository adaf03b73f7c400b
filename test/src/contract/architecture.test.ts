/** The shape of the code base, held by reading its imports: layers, homes of third-party packages, the environment. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const PROJECTS = [
  'packages/schemas',
  'packages/core',
  'apps/producer-api',
  'apps/worker',
  'apps/cli',
  'infra',
];

interface SourceFile {
  path: string;
  text: string;
  imports: string[];
}

function sources(folder: string): SourceFile[] {
  return readdirSync(join(root, folder, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !/\.(test|fixture)\.ts$/.test(name))
    .map((name) => {
      const path = join(folder, 'src', name);
      const text = readFileSync(join(root, path), 'utf8');
      return { path, text, imports: importsOf(text) };
    });
}

function importsOf(text: string): string[] {
  const found = text.matchAll(/(?:^|\n)\s*(?:import|export)\s(?:[^'";]*?\sfrom\s)?['"]([^'"]+)['"]/g);
  return [...found].map((match) => match[1] as string);
}

const files = PROJECTS.flatMap(sources);

/** Static imports, types and `import('…')`. */
function importers(packageName: string): string[] {
  return files
    .filter(
      ({ imports, text }) =>
        imports.some((from) => from === packageName || from.startsWith(`${packageName}/`)) ||
        text.includes(`import('${packageName}'`),
    )
    .map(({ path }) => path)
    .sort();
}

describe('dependencies point one way: apps → core → schemas', () => {
  const below: Record<string, string[]> = {
    'packages/schemas': [],
    'packages/core': ['@remuda/schemas'],
    'apps/producer-api': ['@remuda/schemas', '@remuda/core'],
    'apps/worker': ['@remuda/schemas', '@remuda/core'],
    'apps/cli': ['@remuda/schemas', '@remuda/core', '@remuda/infra'],
    infra: [],
  };
  for (const [project, allowed] of Object.entries(below)) {
    it(`${project} imports of ours only ${allowed.join(', ') || 'nothing'}`, () => {
      const ours = files
        .filter(({ path }) => path.startsWith(`${project}/`))
        .flatMap(({ path, imports }) =>
          imports
            .filter((from) => from.startsWith('@remuda/'))
            .filter((from) => !allowed.some((name) => from === name || from.startsWith(`${name}/`)))
            .map((from) => `${path} imports ${from}`),
        );
      expect(ours).toEqual([]);
    });
  }

  it('no import leaves its own package by a relative path', () => {
    const escapes = files.flatMap(({ path, imports }) =>
      imports
        .filter((from) => from.startsWith('.'))
        .filter((from) => {
          const project = PROJECTS.find((name) => path.startsWith(`${name}/`)) as string;
          return relative(join(root, project), resolve(root, dirname(path), from)).startsWith('..');
        })
        .map((from) => `${path} imports ${from}`),
    );
    expect(escapes).toEqual([]);
  });
});

describe('one third-party package, one home', () => {
  const homes: Record<string, RegExp> = {
    bullmq: /^packages\/core\/src\/queue\/(job|id)-queue\.ts$/,
    ioredis: /^packages\/core\/src\/store\/redis\.ts$/,
    'onnxruntime-node': /^packages\/core\/src\/harness\/onnx-session\.ts$/,
    sharp: /^packages\/core\/src\/harness\/image-input\.ts$/,
    pino: /^packages\/core\/src\/observability\/logger\.ts$/,
    'prom-client': /^packages\/core\/src\/observability\/metrics\.ts$/,
    nanoid: /^packages\/core\/src\/ids\.ts$/,
    '@aws-sdk/client-s3': /^packages\/core\/src\/repository\/sources\/s3-client\.ts$/,
    undici: /^packages\/core\/src\/(webhooks\/send-webhook|bulk\/input\/checked-fetch)\.ts$/,
    'csv-parse': /^packages\/core\/src\/bulk\/input\/text\/csv-records\.ts$/,
    tinyglobby: /^packages\/core\/src\/bulk\/input\/images\/image-listing\.ts$/,
    'ipaddr.js': /^packages\/core\/src\/webhooks\/address-rules\.ts$/,
    '@duckdb/node-api': /^packages\/core\/src\/bulk\/input\/columnar\/parquet\/duckdb\.ts$/,
    fzstd: /^packages\/core\/src\/bulk\/input\//,
    yaml: /^packages\/core\/src\/repository\//,
    'hyparquet-writer': /^packages\/core\/src\/bulk\/output\/parquet-\w+\.ts$/,
    '@bokuweb/zstd-wasm': /^packages\/core\/src\/bulk\/output\/compress\.ts$/,
    'apache-arrow': /^packages\/core\/src\/bulk\/(output|input\/columnar)\/[\w/-]+\.ts$/,
    helmet: /^apps\/producer-api\/src\/secure-headers\.ts$/,
    fastify: /^apps\/producer-api\/src\//,
    commander: /^apps\/cli\/src\//,
  };
  for (const [name, home] of Object.entries(homes)) {
    it(`${name} is imported by ${home.source} alone`, () => {
      const found = importers(name);
      expect(found.length).toBeGreaterThan(0);
      expect(found.filter((path) => !home.test(path))).toEqual([]);
    });
  }
});

describe('core thinks and does not act', () => {
  const core = files.filter(({ path }) => path.startsWith('packages/core/'));
  const code = ({ text }: SourceFile): string => text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');

  it('the environment is read in config.ts of an app and nowhere else', () => {
    const readers = files
      .filter((file) => !file.path.startsWith('infra/') && /process\.env\b/.test(code(file)))
      .map(({ path }) => path)
      // main.ts hands it to config.ts.
      .filter((path) => !/^apps\/[^/]+\/src\/(config|main)\.ts$/.test(path));
    // What a native library reads must be set before it is loaded, in the process that loads it.
    expect(readers).toEqual(['packages/core/src/inference/native-telemetry.ts']);
  });

  it('ends no process but a runner, which is one of its own', () => {
    const enders = core.filter((file) => /process\.exit\(/.test(code(file))).map(({ path }) => path);
    expect(enders.filter((path) => !path.startsWith('packages/core/src/inference/'))).toEqual([]);
  });

  it('loads the S3 SDK only when an S3 source is read', () => {
    const atStart = core.filter(({ text }) =>
      importsOf(text.replace(/import type [^;]*;/g, '')).includes('@aws-sdk/client-s3'),
    );
    expect(atStart.map(({ path }) => path)).toEqual([]);
  });

  it('serves no HTTP and has no root barrel', () => {
    expect(importers('node:http').filter((path) => path.startsWith('packages/core/'))).toEqual([]);
    expect(core.map(({ path }) => path)).not.toContain('packages/core/src/index.ts');
  });
});

it('the API never loads the native runtime, not even by importing a neighbour', () => {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const seen = new Set<string>();
  const visit = (path: string): void => {
    if (seen.has(path)) return;
    seen.add(path);
    const file = byPath.get(path);
    if (!file) return;
    const runtimeImports = importsOf(file.text.replace(/import type [^;]*;/g, ''));
    for (const from of runtimeImports) {
      if (from.startsWith('.')) visit(join(dirname(path), from.replace(/\.js$/, '.ts')));
      else if (from.startsWith('@remuda/core/')) {
        visit(`packages/core/src/${from.slice('@remuda/core/'.length)}.ts`);
      }
    }
  };
  visit('apps/producer-api/src/main.ts');
  expect(seen.size).toBeGreaterThan(20);
  expect([...seen].filter((path) => /harness\/(kinds|image-input)/.test(path))).toEqual([]);
});
