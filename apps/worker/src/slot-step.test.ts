import { HarnessConfig } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { nextStep, type SlotFacts } from './slot-step.js';

const content = (digest = 'a', changes: Partial<HarnessConfig> = {}) => ({
  digest,
  config: HarnessConfig.parse({ harness: 'onnx', ...changes }),
});

const facts = (changes: Partial<SlotFacts>): SlotFacts => ({
  want: 'load',
  loaded: null,
  source: content(),
  blocked: false,
  evicted: false,
  unusedMs: 0,
  idleMs: 10_000,
  ...changes,
});
const step = (changes: Partial<SlotFacts>) => nextStep(facts(changes));

describe('a version that is not loaded', () => {
  it('is loaded where it is wanted now, and not where a request has to ask for it', () => {
    expect(step({})).toEqual({ do: 'load' });
    for (const want of ['on_demand', 'idle', 'off'] as const) {
      expect(step({ want })).toEqual({ do: 'nothing' });
    }
  });

  it('waits where it failed, was unloaded to make room, or its files are gone', () => {
    for (const change of [{ blocked: true }, { evicted: true }, { source: null }]) {
      expect(step(change)).toEqual({ do: 'nothing' });
    }
  });
});

describe('a version that is loaded', () => {
  const loaded = content();

  it('stays as it is where nothing has changed, whoever wants it', () => {
    for (const want of ['load', 'on_demand', 'idle'] as const) {
      expect(step({ loaded, want })).toEqual({ do: 'nothing' });
    }
  });

  it('goes when it is not wanted, or outside the policy when it was not used for a while', () => {
    expect(step({ loaded, want: 'off' })).toEqual({ do: 'unload', because: 'off' });
    expect(step({ loaded, want: 'idle', unusedMs: 10_000 })).toEqual({ do: 'unload', because: 'idle' });
    expect(step({ loaded, want: 'on_demand', unusedMs: 1e9 })).toEqual({ do: 'nothing' });
  });

  it('takes new settings live, more sessions by scaling, and what needs a new session by a reload', () => {
    const to = (changes: Partial<HarnessConfig>) => step({ loaded, source: content('a', changes) });
    expect(to({ max_batch_size: 4 })).toEqual({ do: 'configure' });
    expect(to({ timeout_ms: 5, instances: 2 })).toEqual({ do: 'scale' });
    expect(to({ intra_op_threads: 2 })).toEqual({ do: 'reload' });
    expect(step({ loaded, source: content('b') })).toEqual({ do: 'reload' });
  });

  it('serves on as it is where its files are gone or the change has failed', () => {
    expect(step({ loaded, source: null })).toEqual({ do: 'nothing' });
    expect(step({ loaded, source: content('b'), blocked: true })).toEqual({ do: 'nothing' });
  });
});
