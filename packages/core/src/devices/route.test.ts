import { describe, expect, it } from 'vitest';
import { RemudaError } from '../errors.js';
import { type RouteFacts, routeRequest } from './route.js';

const route = (facts: Partial<RouteFacts>) =>
  routeRequest({
    affinity: ['cuda', 'cpu'],
    liveClasses: new Set(['cuda', 'cpu']),
    lane: 'interactive',
    ...facts,
  });

describe('routeRequest', () => {
  it('takes the first class of the rules that a live worker has', () => {
    expect(route({})).toEqual({
      device_class: 'cuda',
      lane: 'interactive',
      reasons: ['the model prefers cuda, then cpu', 'a live worker has it on cuda'],
    });
  });

  it('passes over a class that no live worker has', () => {
    expect(route({ liveClasses: new Set(['cpu', 'webgpu']), lane: 'bulk' })).toEqual({
      device_class: 'cpu',
      lane: 'bulk',
      reasons: [
        'the model prefers cuda, then cpu',
        'no live worker has it on cuda',
        'a live worker has it on cpu',
      ],
    });
  });

  it('takes the first choice when no worker is alive, and says so', () => {
    expect(route({ liveClasses: new Set() })).toMatchObject({
      device_class: 'cuda',
      reasons: [
        'the model prefers cuda, then cpu',
        'no live worker has the model: the request waits for one on cuda, the first choice',
      ],
    });
  });

  it('says when there was no choice', () => {
    expect(route({ affinity: ['cpu'] }).reasons).toEqual([
      'the model allows cpu only',
      'a live worker has it on cpu',
    ]);
  });

  it('follows what the request asks for', () => {
    expect(route({ requested: 'cpu' })).toMatchObject({
      device_class: 'cpu',
      reasons: ['the request asks for cpu, which the model allows'],
    });
  });

  it('waits on the class that was asked for, though another is alive', () => {
    expect(route({ requested: 'cuda', liveClasses: new Set(['cpu']) })).toMatchObject({
      device_class: 'cuda',
      reasons: [
        'the request asks for cuda, which the model allows',
        'no live worker has the model on cuda: the request waits for one',
      ],
    });
  });

  it('refuses a class that the rules do not allow, naming those that they do', () => {
    const act = () => route({ requested: 'webgpu' });
    expect(act).toThrow(RemudaError);
    expect(act).toThrow('the model does not run on webgpu; its rules allow cuda, cpu');
    expect(() => route({ requested: 'webgpu' })).toThrow(
      expect.objectContaining({
        code: 'device_not_allowed',
        details: { requested: 'webgpu', allowed: ['cuda', 'cpu'] },
      }),
    );
  });
});
