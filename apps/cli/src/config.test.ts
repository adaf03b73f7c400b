import { describe, expect, it } from 'vitest';
import { readConfig, wantsColour } from './config.js';

describe('the configuration', () => {
  it('talks to the local API unless REMUDA_URL names another', () => {
    expect(readConfig({}, '/w')).toMatchObject({
      url: 'http://127.0.0.1:8080',
      redisUrl: undefined,
      cwd: '/w',
    });
    expect(readConfig({ REMUDA_URL: 'https://fleet.example/' }, '/w').url).toBe('https://fleet.example');
  });

  it('names a variable that is wrong or misspelt, as wrong usage', () => {
    expect(() => readConfig({ REMUDA_URL: 'fleet' }, '/')).toThrow(
      /REMUDA_URL: an http:\/\/ or https:\/\/ address/,
    );
    expect(() => readConfig({ REMUDA_MODLES: 'm' }, '/')).toThrow(/did you mean REMUDA_MODELS/);
    expect(() => readConfig({ REDIS_URL: 'localhost' }, '/')).toThrow(
      expect.objectContaining({ exitCode: 2 }),
    );
  });

  it('leaves the settings of the API and the workers to them', () => {
    expect(() => readConfig({ REMUDA_API_PORT: '1', REMUDA_WORKER_PORT: '2' }, '/')).not.toThrow();
  });

  it.each([
    [{}, true, true],
    [{}, false, false],
    [{ NO_COLOR: '1' }, true, false],
    [{ FORCE_COLOR: '1', NO_COLOR: '1' }, false, true],
    [{ FORCE_COLOR: '0' }, true, false],
    [{ TERM: 'dumb' }, true, false],
  ])('with %j and isTTY %j colours: %j', (env, isTTY, wanted) => {
    expect(wantsColour(env, { isTTY })).toBe(wanted);
  });
});
