/** What a name tells of a file. */
import { describe, expect, it } from 'vitest';
import { detectInput } from './detect.js';

describe('format and compression are told by the ending', () => {
  const cases: Array<[string, string, string]> = [
    ['rows.jsonl', 'jsonl', 'none'],
    ['rows.NDJSON.gz', 'jsonl', 'gzip'],
    ['a.b/rows.csv.zst', 'csv', 'zstd'],
    ['data.parquet', 'parquet', 'none'],
    ['data.arrow', 'arrow', 'none'],
    ['images/', 'images', 'none'],
    ['images/**/*.jpg', 'images', 'none'],
    ['images/*', 'images', 'none'],
    ['one.png', 'images', 'none'],
    ['urls.txt.gz', 'list', 'gzip'],
    ['https://host/rows.jsonl.gz?X-Signature=a.csv', 'jsonl', 'gzip'],
    ['s3://bucket/some/rows.csv', 'csv', 'none'],
  ];
  for (const [name, format, compression] of cases)
    it(`${name} is ${format}, ${compression}`, () => {
      expect(detectInput(name)).toMatchObject({ format, compression });
    });

  it('.tsv is CSV with tabs', () => {
    expect(detectInput('a.tsv.gz')).toEqual({ format: 'csv', compression: 'gzip', delimiter: '\t' });
  });

  it('a folder is images, whatever its name', () => {
    expect(detectInput('photos', true).format).toBe('images');
  });
});

describe('a name that tells nothing is refused with what is known', () => {
  it('names the endings', () => {
    expect(() => detectInput('data.bin')).toThrow(/"data.bin" does not tell.*\.jsonl.*\.csv.*\.parquet/s);
  });
  it('says what to do with .json', () => {
    expect(() => detectInput('data.json')).toThrow(/jq -c/);
  });
  it('says that a glob of data files is several jobs', () => {
    expect(() => detectInput('part-*.csv')).toThrow(/only images can be given as a glob/);
  });
  it('shows no query of an address', () => {
    expect(() => detectInput('https://host/x?signature=secret')).toThrow(/^(?!.*secret)/s);
  });
});
