import { describe, expect, it } from 'vitest';
import { ProblemError } from './api-client.js';
import { withPatience } from './patience.js';

const refusal = (status: number, retryAfterS?: number, retryable = true): ProblemError =>
  new ProblemError(
    status,
    { type: 'urn:x', title: 't', status, detail: 'd', code: 'over_capacity', retryable },
    retryAfterS,
  );

/** Answers in turn, and a clock that only sleeping moves. */
async function attempt(answers: (Error | string)[], seconds: number) {
  let now = 0;
  const slept: number[] = [];
  const outcome = await withPatience(
    async () => {
      const answer = answers.shift();
      if (answer instanceof Error) throw answer;
      return answer;
    },
    {
      seconds,
      onWait: (_problem, ms) => slept.push(ms),
      sleep: async (ms) => {
        now += ms;
      },
      now: () => now,
      random: () => 0.5,
    },
  ).catch((error: unknown) => error);
  return { outcome, slept };
}

describe('patience', () => {
  it('comes again when the server says, and a little later', async () => {
    const { outcome, slept } = await attempt([refusal(429, 3), refusal(503, 1), 'accepted'], 10);
    expect(outcome).toBe('accepted');
    expect(slept).toEqual([3_500, 1_500]);
  });

  it('ends with the refusal where the next call would come too late', async () => {
    const last = refusal(429, 5);
    const { outcome, slept } = await attempt([refusal(429, 5), last, 'accepted'], 10);
    expect(outcome).toBe(last);
    expect(slept).toEqual([5_500]);
  });

  it('does not wait at all where there is none', async () => {
    expect((await attempt([refusal(429, 1), 'accepted'], 0)).slept).toEqual([]);
  });

  it('comes again after two seconds where the server does not say', async () => {
    expect((await attempt([refusal(503), 'accepted'], 10)).slept).toEqual([2_500]);
  });

  it('does not send again what will fail again', async () => {
    for (const error of [refusal(422, 1), refusal(429, 1, false), new Error('no network')]) {
      expect((await attempt([error, 'accepted'], 10)).outcome).toBe(error);
    }
  });
});
