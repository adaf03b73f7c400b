import type { Fleet } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { findNotLoaded, notLoadedText } from './not-loaded.js';

const bad = { model: 'broken', version: '1', state: 'failed', reason: 'protobuf parsing failed' };
const worker = (pid: number, ...models: object[]) => ({ pid, state: 'ready', models });
const api = (...answers: object[][]) => ({
  fleet: async () => ({ workers: answers.length > 1 ? answers.shift() : answers[0] }) as unknown as Fleet,
});

describe('models that could not be loaded', () => {
  it('are those of our workers, each once, when the API has seen them all', async () => {
    const good = { model: 'add', version: '1', state: 'ready', reason: null };
    const other = worker(3, { ...bad, model: 'other' });
    const answers = api([worker(1, bad)], [worker(1, bad, good), worker(2, bad), other]);
    expect(await findNotLoaded(answers, [1, 2])).toEqual([
      { model: 'broken', version: '1', reason: 'protobuf parsing failed', served: false },
    ]);
  });

  it('are not waited for without end', async () => {
    expect(await findNotLoaded(api([]), [1], 0)).toEqual([]);
    const fleet = () => Promise.reject(new Error('no answer'));
    expect(await findNotLoaded({ fleet }, [1], 0)).toEqual([]);
  });

  it('are a line with the reasons, shortened', () => {
    expect(notLoadedText([])).toBeUndefined();
    const reason = `broken@2: ${bad.reason}`;
    const broken = { ...bad, version: '2', reason, served: true };
    expect(
      notLoadedText([broken, { model: 'noyaml', version: '', reason: 'x'.repeat(200), served: false }]),
    ).toBe(`2 models could not be loaded: broken@2 (protobuf parsing failed), noyaml (${'x'.repeat(140)}…)`);
  });
});
