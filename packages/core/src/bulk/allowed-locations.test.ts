/** What may be named from outside: folders that were opened, and no way out of them. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllowed } from '../webhooks/address-rules.js';
import { AllowedLocations } from './allowed-locations.js';

const base = realpathSync(mkdtempSync(join(tmpdir(), 'remuda-locations-')));
const open = join(base, 'open');
const options = { filesFolder: join(open, 'files'), addresses: parseAllowed('10.1.0.0/16') };
const allowed = new AllowedLocations({ ...options, paths: [open] });

beforeAll(() => {
  for (const folder of ['open/sub', 'open/files', 'closed'])
    mkdirSync(join(base, folder), { recursive: true });
  for (const file of ['open/a.csv', 'open/a[1].csv', 'open/files/x', 'closed/b.csv'])
    writeFileSync(join(base, file), 'x');
  symlinkSync(join(base, 'closed'), join(open, 'out'));
  symlinkSync(join(base, 'closed/b.csv'), join(open, 'link.csv'));
  symlinkSync(join(open, 'a.csv'), join(open, 'fine.csv'));
  symlinkSync(open, join(base, 'way-in'));
});
afterAll(() => rmSync(base, { recursive: true }));

const input = (uri: string) => allowed.input(uri, ['input', 'uri']);
const output = (uri: string) => allowed.output(uri, ['output', 'uri']);

describe('an input', () => {
  it.each([
    ['a file', `${open}/a.csv`, `${open}/a.csv`],
    ['a way with .. that stays within', `${open}/sub/../a.csv`, `${open}/a.csv`],
    ['a link that stays within', `${open}/fine.csv`, `${open}/a.csv`],
    ['a file: URL', `file://${open}/a.csv`, `${open}/a.csv`],
    ['a glob', `${open}/sub/**/*.png`, `${open}/sub/**/*.png`],
    ['a name with the signs of a glob', `${open}/a[1].csv`, `${open}/a[1].csv`],
    ['a public address', 'https://example.com/a.csv', 'https://example.com/a.csv'],
    ['an address that was allowed', 'http://10.1.2.3/a.csv', 'http://10.1.2.3/a.csv'],
    ['an object', 's3://bucket/a.csv', 's3://bucket/a.csv'],
    ...['s3://bucket/a.csv?region=r&endpoint=http://10.1.2.3:9000'].map((uri) => [
      'an object there',
      uri,
      uri,
    ]),
  ])('can be %s', async (_what, uri, opened) => expect(await input(uri)).toBe(opened));

  it.each([
    ['elsewhere', `${base}/closed/b.csv`],
    ['elsewhere by ..', `${open}/../closed/b.csv`],
    ['elsewhere by a link to a file', `${open}/link.csv`],
    ['elsewhere by a link to a folder', `${open}/out/b.csv`],
    ['elsewhere, and not there', '/no/such/file'],
    ['in a folder whose name only begins so', `${base}/open-too/a.csv`],
    ['an uploaded file of somebody', `${open}/files/x`],
    ['relative', 'a.csv'],
    ['a glob from a closed folder', `${base}/*/b.csv`],
    ['a glob with a way out', `${open}/{sub,../closed}/*`],
    ['a glob behind a link that leads out', `${open}/out/*`],
    ['a file: URL of another host', 'file://host/etc/passwd'],
    ['a private address', 'http://127.0.0.1/a.csv'],
    ['a metadata service', 'http://169.254.169.254/latest'],
    ['of another scheme', 'ftp://example.com/a.csv'],
    ['an object without a key', 's3://bucket'],
    ['an object of a server within', 's3://bucket/a.csv?endpoint=http://169.254.169.254'],
    ['an object of a server of another name', 's3://bucket/a.csv?region=r&endpoint=http://example.com'],
  ])('cannot be %s', (_what, uri) =>
    expect(input(uri)).rejects.toMatchObject({
      code: 'invalid_request',
      violations: [{ path: 'input.uri' }],
    }),
  );

  it('that is not there is told so', () =>
    expect(input(`${open}/none.csv`)).rejects.toMatchObject({ code: 'file_not_found' }));

  it('by a way that leads in is taken where that way is opened', async () => {
    const by = new AllowedLocations({ ...options, paths: [join(base, 'way-in')] });
    expect(await by.input(`${base}/way-in/a.csv`, ['uri'])).toBe(`${open}/a.csv`);
  });

  it('by path names the setting where no folder is opened', () =>
    expect(
      new AllowedLocations({ ...options, paths: [] }).input(`${open}/a.csv`, ['uri']),
    ).rejects.toMatchObject({
      violations: [{ expected: expect.stringContaining('REMUDA_BULK_PATHS') }],
    }));
});

describe('an output', () => {
  it('can be a new file, one to be overwritten, or an object', async () => {
    expect(await output(`${open}/sub/new.csv`)).toBe(`${open}/sub/new.csv`);
    expect(await output(`${open}/a.csv`)).toBe(`${open}/a.csv`);
    expect(await output('s3://bucket/out.csv')).toBe('s3://bucket/out.csv');
  });

  it.each([
    ['elsewhere', `${base}/closed/new.csv`],
    ['in a folder that a link leads to', `${open}/out/new.csv`],
    ['a link', `${open}/link.csv`],
    ['a folder', `${open}/sub`],
    ['a folder with a slash', `${open}/sub/`],
    ['an address', 'https://example.com/out.csv'],
    ['an object of a server within', 's3://bucket/out.csv?endpoint=http://127.0.0.1:9000'],
  ])('cannot be %s', (_what, uri) =>
    expect(output(uri)).rejects.toMatchObject({
      code: 'invalid_request',
      violations: [{ path: 'output.uri' }],
    }),
  );

  it('whose folder is not there is told so', () =>
    expect(output(`${open}/none/new.csv`)).rejects.toMatchObject({ code: 'file_not_found' }));
});

it('what a glob has found can be asked for again', async () => {
  expect(await allowed.isOpen(`${open}/sub/x.png`)).toBe(true);
  expect(await allowed.isOpen(`${base}/closed/b.csv`)).toBe(false);
  expect(await allowed.isOpen(`${open}/files/x`)).toBe(false);
});
