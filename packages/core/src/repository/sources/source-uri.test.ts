/** A source as one line of text: what is understood, and what is told about the rest. */
import type { ModelSourceSpec } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { parseSourceUri, sourceText } from './source-uri.js';

const hash = 'a'.repeat(64);

describe('a line', () => {
  const lines: Array<[string, ModelSourceSpec]> = [
    ['./models/celsius', { type: 'local', path: './models/celsius' }],
    ['/srv/celsius', { type: 'local', path: '/srv/celsius' }],
    ['https://host/m/manifest.json?v=1', { type: 'http', url: 'https://host/m/manifest.json?v=1' }],
    [`https://host/m.onnx#sha256=${hash}`, { type: 'http', url: 'https://host/m.onnx', sha256: hash }],
    ['s3://bucket/team/m/', { type: 's3', bucket: 'bucket', prefix: 'team/m' }],
    ['s3://bucket', { type: 's3', bucket: 'bucket', prefix: '' }],
    [
      's3://bucket/m?region=eu-1&endpoint=http://127.0.0.1:9000&force_path_style=false',
      {
        type: 's3',
        bucket: 'bucket',
        prefix: 'm',
        region: 'eu-1',
        endpoint: 'http://127.0.0.1:9000',
        force_path_style: false,
      },
    ],
  ];
  for (const [line, spec] of lines) {
    it(`${line} is a source of type ${spec.type}`, () => expect(parseSourceUri(line)).toEqual(spec));
  }
});

describe('a line that is no source', () => {
  const lines: Array<[string, string]> = [
    ['', 'expected a folder (./models/name), https://'],
    ['gs://bucket/m', '"gs:" is not a kind of source; expected a folder'],
    ['https://host/m.onnx#sha256=abc', 'sha256: expected a sha256 as 64 lower-case hex digits'],
    ['https://host/m.onnx?v=1', 'one file needs #sha256=<64 hex digits> after it'],
    ['https://host/m.onnx#v1', 'after "#" expected sha256=<64 hex digits>'],
    ['https://user:secret@host/m', 'url: a name or password in the address would be stored and shown'],
    ['s3:bucket', 'expected s3://bucket/prefix'],
    ['s3://bucket/m?zone=a', '"zone" is not a parameter; known are region, endpoint, force_path_style'],
    ['s3://bucket/m?endpoint=host', 'endpoint: expected an http:// or https:// address'],
    ['s3://bucket/m?force_path_style=yes', 'force_path_style: expected true or false'],
  ];
  for (const [line, told] of lines) {
    it(`${line || '(empty)'} is told what was expected`, () =>
      expect(() => parseSourceUri(line)).toThrow(told));
  }

  it('never tells the secret that stood in it', () => {
    expect(() => parseSourceUri('https://user:secret@host/m')).toThrow('source "https://…@host/m": url');
  });
});

describe('a spec as text', () => {
  it('shows no headers and no query, which may hold a signature', () => {
    const url = 'https://host/m/manifest.json?signature=x';
    const spec: ModelSourceSpec = { type: 'http', url, headers: { authorization: 'env:T' } };
    expect(sourceText(spec)).toBe('https://host/m/manifest.json?…');
    expect(sourceText({ type: 's3', bucket: 'bucket', prefix: 'm' })).toBe('s3://bucket/m');
    expect(sourceText({ type: 'local', path: './m' })).toBe('./m');
  });
});
