/** What others rely on: the error catalogue, its page in the docs, and the JSON Schemas that are committed. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { driftedFiles } from './generate.js';
import { ERROR_CATALOGUE } from './index.js';

interface Row {
  code: string;
  status: number;
  retryable: boolean;
  sentence: string;
  remedy: string;
}

/** The rows of the tables in docs/errors.md: | `code` | status | retryable | sentence | what to do | */
function documented(): Row[] {
  const page = readFileSync(new URL('../../../docs/errors.md', import.meta.url), 'utf8');
  return page
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => {
      const [code = '', status, retryable, sentence = '', remedy = ''] = line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim());
      return {
        code: code.replaceAll('`', ''),
        status: Number(status),
        retryable: retryable === 'yes',
        sentence,
        remedy,
      };
    });
}

describe('the error catalogue', () => {
  it('is as it was: a code that changes or goes breaks programs that look at it', () => {
    const lines = Object.entries(ERROR_CATALOGUE).map(
      ([code, { status, retryable }]) => `${code} ${status}${retryable ? ' retryable' : ''}`,
    );
    expect(lines).toMatchSnapshot();
  });

  it('stands in docs/errors.md code by code, with status, retryable and sentence', () => {
    const wanted = Object.entries(ERROR_CATALOGUE).map(([code, entry]) => ({ code, ...entry }));
    expect(documented().map(({ remedy, ...row }) => row)).toEqual(wanted);
  });

  it('says for each code what to do', () => {
    expect(documented().filter((row) => row.remedy.length < 10)).toEqual([]);
  });
});

describe('the committed JSON Schemas', () => {
  it('are what the zod schemas say', () => {
    expect(driftedFiles()).toEqual([]);
  });
});
