import { HarnessConfig, type ServingState } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { untouched } from './deployments.js';
import { resolveRef, servedRef, type TargetFacts, targetRefs, versionsOfPolicy } from './target-refs.js';

const deployment = untouched('m');

function refs(over: Partial<TargetFacts> = {}): Record<string, string> {
  const config = HarnessConfig.parse({ harness: 'onnx' });
  return Object.fromEntries(targetRefs({ config, deployment, versions: ['1', '2', '3'], ...over }));
}

describe('default is meant to lead to', () => {
  it('the newest version that the policy keeps', () => {
    expect(refs()).toEqual({ default: '3' });
    const only = { ...deployment, version_policy: { only: ['1', '2'] } };
    expect(refs({ deployment: only })).toEqual({ default: '2' });
  });

  it('the alias stable, where its version is there', () => {
    expect(refs({ deployment: { ...deployment, aliases: { stable: '1' } } })).toEqual({
      default: '1',
      stable: '1',
    });
    expect(refs({ deployment: { ...deployment, aliases: { stable: '9' } } })).toEqual({ default: '3' });
  });

  it('the stable side of a split', () => {
    const split = { stable: '2', weights: { 2: 90, 3: 10 } } as never;
    expect(refs({ deployment: { ...deployment, split } })).toEqual({ default: '2' });
  });

  it('no version that was unloaded by name', () => {
    expect(refs({ deployment: { ...deployment, loads: { 3: 'unloaded' } } })).toEqual({ default: '2' });
  });

  it('the newest that was loaded by name, where the model is explicit; else nothing', () => {
    const explicit = { ...deployment, load_mode: 'explicit' as const };
    expect(refs({ deployment: explicit })).toEqual({});
    expect(refs({ deployment: { ...explicit, loads: { 1: 'loaded', 2: 'loaded' } } })).toEqual({
      default: '2',
    });
  });

  it('nothing where there is no version', () => {
    expect(refs({ versions: [] })).toEqual({});
  });
});

it('a policy keeps all, the latest, the latest few, or those that it names', () => {
  const versions = ['1', '2', '10'];
  expect(versionsOfPolicy('all', versions)).toEqual(versions);
  expect(versionsOfPolicy('latest', versions)).toEqual(['10']);
  expect(versionsOfPolicy({ latest: 2 }, versions)).toEqual(['2', '10']);
  expect(versionsOfPolicy({ only: ['2', '7'] }, versions)).toEqual(['2']);
});

describe('a reference at present', () => {
  const since = new Date(0).toISOString();
  const serving: ServingState = {
    model: 'm',
    refs: { canary: { version: '1', previous: null, since, reason: '' } },
  };

  it('is where the steward has moved it, not where it is meant to go', () => {
    const aliases = { canary: '2' };
    expect(resolveRef('canary', { aliases })).toBe('2');
    expect(servedRef('canary', { aliases }, serving)).toBe('1');
    expect(servedRef('canary', { aliases }, undefined)).toBe('2');
  });

  it('that was taken away leads nowhere at once; a number is itself', () => {
    expect(servedRef('canary', { aliases: {} }, serving)).toBeUndefined();
    expect(servedRef('7', { aliases: {} }, serving)).toBe('7');
  });
});
