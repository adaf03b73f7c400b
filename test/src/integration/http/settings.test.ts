/** The environment of the API: defaults, and what is said of a variable that is wrong or unknown. */
import { apiConfig } from '@remuda/producer-api';
import { expect, it } from 'vitest';

it('nothing has to be set', () => {
  expect(apiConfig({})).toMatchObject({ host: '127.0.0.1', port: 8080, redisUrl: 'redis://127.0.0.1:6379' });
});

it('an unknown variable of ours is an error that names what may have been meant', () => {
  expect(() => apiConfig({ REMUDA_API_PROT: '1' })).toThrow(
    /REMUDA_API_PROT is not a setting; did you mean REMUDA_API_PORT/,
  );
  expect(() => apiConfig({ REMUDA_XYZ: '1' })).toThrow(
    /REMUDA_XYZ is not a setting; known are .*REMUDA_API_MAX_BODY_BYTES/,
  );
});

it('variables of the workers and of other programs are none of its business', () => {
  expect(() =>
    apiConfig({
      REMUDA_WORKER_LOCK_MS: '1',
      REMUDA_API_KEY: 'rmd_x',
      REMUDA_URL: 'x',
      PATH: '/bin',
      REMUDA_TEST_REDIS_URL: 'x',
    }),
  ).not.toThrow();
});

it('a wrong value is told with what was given and when to change it', () => {
  expect(() => apiConfig({ REMUDA_API_PORT: 'http' })).toThrow(
    /REMUDA_API_PORT: .*"http".*Port to listen on/,
  );
});

it('a wrong address of Redis is told without its password', () => {
  expect(() => apiConfig({ REDIS_URL: 'http://user:s3cret@host' })).toThrow(/"http:\/\/\*\*\*@host"/);
});
