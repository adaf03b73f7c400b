/** The tables of settings and of model.yaml say what the schemas say: names, defaults, and for settings the words. */
import { codesOf, DEFAULT_RULES, isDeadLetter } from '@remuda/core/retries/error-classes';
import { ERROR_CLASSES, HarnessConfig, PaddingRule, ResultCacheRule, type RetryClass } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { readPage, tableOf } from './documents.js';

/** What is used of a zod schema; zod itself is no dependency of the tests. */
interface Field {
  description?: string;
  safeParse(value: unknown): { data?: unknown };
}
interface Fields {
  shape: Readonly<Record<string, Field>>;
}
type Schemas = Record<string, Fields>;

/** The apps' config.ts are not part of what their packages give out: read from the build. */
async function settings(app: string, file = 'dist/config.js'): Promise<Schemas> {
  return (await import(new URL(`../../../${app}/${file}`, import.meta.url).href)) as Schemas;
}

interface Row {
  name: string;
  value: string;
  says: string;
}

/** Defaults as they are written in the environment or in YAML; a flag or a list is shown as it would be typed. */
function shown(value: unknown): string {
  if (value === undefined) return '';
  if (typeof value === 'string') return value === '' ? '`""`' : `\`${value}\``;
  return `\`${JSON.stringify(value).replaceAll(',', ', ').replaceAll(':', ': ')}\``;
}

function rowsOf(schema: Fields, without: readonly string[] = []): Row[] {
  return Object.entries(schema.shape)
    .filter(([name]) => !without.includes(name))
    .map(([name, field]) => ({
      name,
      value: shown(field.safeParse(undefined).data),
      says: field.description ?? '',
    }));
}

/** A list with nothing in it has no form in the environment. */
const inEnvironment = (row: Row): Row => (row.value === '`[]`' ? { ...row, value: '' } : row);

describe('the settings in the README', async () => {
  const { SharedSettings } = await settings('packages/core', 'dist/settings/shared-settings.js');
  const shared = Object.keys((SharedSettings as Fields).shape);
  const all: [table: string, schema: Fields | undefined, without: string[]][] = [
    ['shared settings', SharedSettings, []],
    ['api settings', (await settings('apps/producer-api')).ApiSettings, shared],
    ['worker settings', (await settings('apps/worker')).WorkerSettings, shared],
    ['cli settings', (await settings('apps/cli')).CliSettings, shared],
  ];
  for (const [name, schema, without] of all) {
    it(`${name}: each with its default and its words`, () => {
      const expected = rowsOf(schema as Fields, without).map(inEnvironment);
      const written = tableOf(readPage('README.md'), name);
      expect(written).toEqual(expected.map((row) => [`\`${row.name}\``, row.value, row.says]));
    });
  }
});

describe('the fields of model.yaml in docs/models.md', () => {
  const expectFields = (table: string, rows: Row[], page = 'docs/models.md') => {
    const written = tableOf(readPage(page), table);
    expect(written.map((row) => row.slice(0, 2))).toEqual(rows.map((row) => [`\`${row.name}\``, row.value]));
    expect(written.filter((row) => !row[2])).toEqual([]);
  };

  it('are those of HarnessConfig, with its defaults', () =>
    expectFields('model.yaml', rowsOf(HarnessConfig)));
  it('of a result cache, in docs/result-cache.md', () =>
    expectFields('result_cache', rowsOf(ResultCacheRule), 'docs/result-cache.md'));
  it('of a padding rule too', () => expectFields('padding', rowsOf(PaddingRule)));
  it('and of what restores lengths', () =>
    expectFields('restore', rowsOf(PaddingRule.shape.restore.unwrap().element)));
});

it('the classes of errors in docs/retries.md are those that hold', () => {
  const pause = (ms: number): string => (ms < 1_000 ? `${ms} ms` : `${ms / 1_000} s`);
  const expected = ERROR_CLASSES.map((errorClass) => {
    const codes = codesOf(errorClass);
    const rule = DEFAULT_RULES[errorClass as RetryClass];
    const attempts = rule?.attempts ?? 1;
    const pauses = attempts > 1 ? `${pause(rule.first_ms)} to ${pause(rule.max_ms)}` : '';
    const kept = isDeadLetter(codes[0] as string) ? 'yes' : 'no';
    return [
      `\`${errorClass}\``,
      codes.map((code) => `\`${code}\``).join(' '),
      String(attempts),
      pauses,
      kept,
    ];
  });
  expect(tableOf(readPage('docs/retries.md'), 'error classes')).toEqual(expected);
});
