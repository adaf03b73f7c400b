import { ERROR_CLASSES, HarnessConfig } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { classOf, codesOf, isDeadLetter, pauseMs, ruleFor } from './error-classes.js';

const config = (retries: unknown) => HarnessConfig.parse({ harness: 'onnx', retries });

describe('the class of an error', () => {
  it('is one of a closed list, each of which has codes', () => {
    for (const errorClass of ERROR_CLASSES) expect(codesOf(errorClass).length).toBeGreaterThan(0);
  });

  it('of a code that nobody has foreseen is infrastructure: it is tried again and kept', () => {
    expect(classOf('something_new')).toBe('infrastructure');
    expect(isDeadLetter('something_new')).toBe(true);
  });
});

describe('what is tried again', () => {
  it('is trouble around the model, five times; the input, the model and what has ended never', () => {
    expect(ruleFor('worker_lost').attempts).toBe(5);
    for (const code of ['item_rejected', 'inference_failed', 'runner_crashed', 'run_timeout', 'cancelled'])
      expect(ruleFor(code).attempts).toBe(1);
  });

  it('is changed by the model for its own classes, in part', () => {
    const own = config({ model: { attempts: 4 } });
    expect(ruleFor('inference_failed', own)).toEqual({ attempts: 4, first_ms: 250, max_ms: 15_000 });
    expect(ruleFor('worker_lost', own).attempts).toBe(5);
  });

  it('cannot be bad input', () => {
    expect(() => config({ input: { attempts: 2 } })).toThrow();
    expect(() => config({ model: { attempts: 0 } })).toThrow();
  });

  it('waits twice as long each time, up to a bound, with jitter over the upper half', () => {
    const rule = { attempts: 9, first_ms: 100, max_ms: 1_000 };
    const pauses = (random: () => number) =>
      [1, 2, 3, 4, 5].map((failures) => pauseMs(rule, failures, random));
    expect(pauses(() => 1)).toEqual([100, 200, 400, 800, 1_000]);
    expect(pauses(() => 0)).toEqual([50, 100, 200, 400, 500]);
  });
});
