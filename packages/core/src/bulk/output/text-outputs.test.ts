/** Lines of JSON and CSV, the OpenAI form, and the file of errors. */
import { gunzipSync } from 'node:zlib';
import { joinBytesElements } from '@remuda/schemas';
import { decompress } from 'fzstd';
import { describe, expect, it } from 'vitest';
import { itemError } from '../../errors.js';
import type { ChunkResult } from '../chunk.js';
import { createErrorsEncoder } from './errors-file.js';
import { createEncoder, type EncoderOptions } from './output-encoder.js';
import { bigOutput, failure, int64, joined, output, resultOf } from './results.fixture.js';

async function text(options: Partial<EncoderOptions>, results: readonly ChunkResult[]): Promise<string> {
  return (await bytes(options, results)).toString('utf8');
}

async function bytes(options: Partial<EncoderOptions>, results: readonly ChunkResult[]): Promise<Buffer> {
  const defaults = { format: 'jsonl', compression: 'none', ids: false, outputs: [], keep: [] } as const;
  return joined(await createEncoder({ ...defaults, ...options }), results);
}

const OUTPUTS: EncoderOptions['outputs'] = [
  { name: 'prob', datatype: 'FP32', rowShape: [1] },
  { name: 'pair', datatype: 'INT64', rowShape: [2] },
  { name: 'grid', datatype: 'INT32', rowShape: [null, 2] },
  { name: 'tag', datatype: 'BYTES', rowShape: [] },
];

const RESULTS: ChunkResult[] = [
  resultOf(3, {
    firstRow: 7,
    ids: ['a', 'b,"', null],
    kept: [
      int64('n', [1n, 2n ** 60n, 3n], [0, 0, 1]),
      { name: 'say', type: 'string', values: ['x, "y"\r\nz', ' b', null] },
      { name: 'any', type: 'json', values: [{ a: [1, 2] }, 'text', null] },
      { name: 'raw', type: 'bytes', values: [Uint8Array.of(1, 2), Uint8Array.of(), null] },
    ],
    outputs: [
      output('prob', 'FP32', [1], [0.5, Number.NEGATIVE_INFINITY, 0]),
      bigOutput('pair', [2], [2n ** 53n, 3n, -4n, 5n, 0n, 0n]),
      output('grid', 'INT32', null, [1, 2, 3, 4], [[2, 2], [0, 2], null]),
      {
        name: 'tag',
        datatype: 'BYTES',
        shape: [],
        bytes: joinBytesElements([Buffer.from('é'), Uint8Array.of(255), Buffer.alloc(0)]),
      },
    ],
    failures: [failure(2)],
  }),
];
const KEEP: EncoderOptions['keep'] = ['n', 'say', 'any', 'raw'].map((name) => ({ name, type: null }));
const OPTIONS = { ids: true, outputs: OUTPUTS, keep: KEEP };

describe('lines of JSON', () => {
  it('hold row, id, kept columns, and outputs or the error', async () => {
    const lines = (await text(OPTIONS, RESULTS)).trimEnd().split('\n');
    expect(lines).toHaveLength(3);
    expect(lines[0]).toBe(
      '{"row":7,"custom_id":"a","n":1,"say":"x, \\"y\\"\\r\\nz","any":{"a":[1,2]},"raw":{"b64":"AQI="},"prob":0.5,"pair":["9007199254740992",3],"grid":[[1,2],[3,4]],"tag":"é"}',
    );
    expect(JSON.parse(lines[1] as string)).toEqual({
      row: 8,
      custom_id: 'b,"',
      n: '1152921504606846976',
      say: ' b',
      any: 'text',
      raw: { b64: '' },
      prob: '-Infinity',
      pair: [-4, 5],
      grid: [],
      tag: { b64: '/w==' },
    });
    const { code, message } = failure(2).error;
    expect(JSON.parse(lines[2] as string)).toEqual({
      row: 9,
      custom_id: null,
      n: null,
      say: null,
      any: null,
      raw: null,
      error: { code, message },
    });
  });

  it('have the numbers that the rows had in another file', async () => {
    const lines = await text({}, [resultOf(2, { rowNumbers: [40, 12] })]);
    expect(lines).toBe('{"row":40}\n{"row":12}\n');
  });
});

describe('CSV', () => {
  it('has its header once, a cell for each element of a small row, and quotes where they are needed', async () => {
    const { message } = failure(2).error;
    expect(await text({ ...OPTIONS, format: 'csv' }, RESULTS)).toBe(
      [
        'row,custom_id,n,say,any,raw,prob,pair_0,pair_1,grid,tag,error_code,error_message',
        '7,a,1,"x, ""y""\r\nz","{""a"":[1,2]}",AQI=,0.5,9007199254740992,3,"[[1,2],[3,4]]",é,,',
        '8,"b,""",1152921504606846976," b",text,,-Infinity,-4,5,[],"{""b64"":""/w==""}",,',
        `9,,,,,,,,,,,invalid_row,"${message.replaceAll('"', '""')}"`,
        '',
      ].join('\n'),
    );
  });

  it('is its header alone where no row has come', async () => {
    expect(await text({ outputs: OUTPUTS, format: 'csv' }, [])).toBe(
      'row,prob,pair_0,pair_1,grid,tag,error_code,error_message\n',
    );
  });

  it('has long rows in one cell', async () => {
    const wide: EncoderOptions['outputs'] = [{ name: 'y', datatype: 'UINT8', rowShape: [65] }];
    const elements = new Array<number>(65).fill(1);
    const written = await text({ outputs: wide, format: 'csv' }, [
      resultOf(1, { outputs: [output('y', 'UINT8', [65], elements)] }),
    ]);
    expect(written.split('\n')[1]).toBe(`0,"[${elements.join(',')}]",,`);
  });
});

describe('a compressed output', () => {
  const chunks = [0, 1, 2].map((firstRow) => resultOf(1, { firstRow }));

  it.each(['jsonl', 'csv'] as const)('of %s is the same text behind it', async (format) => {
    const plain = await text({ format }, chunks);
    const gzip = await bytes({ format, compression: 'gzip' }, chunks);
    expect(gunzipSync(gzip).toString('utf8')).toBe(plain);
    const zstd = await bytes({ format, compression: 'zstd' }, chunks);
    expect(Buffer.from(decompress(zstd)).toString('utf8')).toBe(plain);
  });

  it('of no rows can be read', async () => {
    expect(gunzipSync(await bytes({ compression: 'gzip' }, []))).toHaveLength(0);
    const zstd = await bytes({ compression: 'zstd' }, []);
    expect(zstd.length).toBeGreaterThan(0);
    expect(decompress(zstd)).toHaveLength(0);
  });
});

describe('an output of the OpenAI form', () => {
  const openai = { job: 'batch_1', model: 'm', version: '2' };

  it('has the answers, and the errors are in their own file', async () => {
    const result = resultOf(2, {
      ids: ['a', 'b'],
      outputs: [output('prob', 'FP32', [1], [0.5, 0])],
      failures: [failure(1)],
    });
    const outputs = OUTPUTS.slice(0, 1);
    const [answer, ...more] = (await text({ ids: true, outputs, openai }, [result])).trimEnd().split('\n');
    expect(more).toEqual([]);
    const id = expect.stringMatching(/^batch_req_[0-9a-f]{32}$/);
    const request_id = expect.stringMatching(/^req_/);
    const tensor = { datatype: 'FP32', shape: [1, 1], data: [0.5] };
    expect(JSON.parse(answer as string)).toEqual({
      id,
      custom_id: 'a',
      response: {
        status_code: 200,
        request_id,
        body: { model: 'm', version: '2', outputs: { prob: tensor } },
      },
      error: null,
    });
    const errors = await joined(await createErrorsEncoder({ ids: true, openai }), [result]);
    const { code, message } = failure(1).error;
    expect(JSON.parse(errors.toString('utf8'))).toEqual({
      id,
      custom_id: 'b',
      response: {
        status_code: 422,
        request_id,
        body: expect.objectContaining({
          status: 422,
          error: { code, message, type: 'invalid_request_error' },
        }),
      },
      error: { code, message },
    });
    // Written again, it is the same line.
    expect((await text({ ids: true, outputs, openai }, [result])).trimEnd()).toBe(answer);
  });

  it('of a row that was not run in time has no response', async () => {
    const error = itemError('batch_expired', 'too late');
    const late = resultOf(1, { ids: ['a'], failures: [{ index: 0, error, input: null }] });
    const line = (await joined(await createErrorsEncoder({ ids: true, openai }), [late])).toString('utf8');
    expect(JSON.parse(line)).toMatchObject({
      custom_id: 'a',
      response: null,
      error: { code: 'batch_expired', message: 'too late' },
    });
  });
});

describe('the file of errors', () => {
  it('has each row that failed, as it came', async () => {
    const input = { x: [1, null], path: 'a.png' };
    const chunks = [
      resultOf(2, { firstRow: 4, ids: ['a', 'b'], failures: [failure(1, input)] }),
      resultOf(1, { firstRow: 6, ids: ['c'] }),
      resultOf(1, { firstRow: 7, rowNumbers: [99], ids: [null], failures: [failure(0, 'not json')] }),
    ];
    const written = await joined(await createErrorsEncoder({ ids: true }), chunks);
    const lines = written.toString('utf8').trimEnd().split('\n');
    const told = (index: number): object => {
      const { code, message } = failure(index).error;
      return { code, message };
    };
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      { row: 5, custom_id: 'b', ...told(1), input },
      { row: 99, custom_id: null, ...told(0), input: 'not json' },
    ]);
  });

  it('is empty where none has', async () => {
    expect(await joined(await createErrorsEncoder({ ids: false }), [resultOf(3)])).toHaveLength(0);
  });
});
