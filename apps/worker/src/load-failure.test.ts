import { ModelLoadError, RemudaError, RUNNER_DIED } from '@remuda/core/errors';
import { expect, it } from 'vitest';
import { isBlocked, loadFailure, PassingLoadError } from './load-failure.js';

it('a fault of the files is not tried again until something changes', () => {
  const failure = loadFailure(new ModelLoadError('not a model'), 'files 1', undefined, 0);
  expect(failure.retryAt).toBeNull();
  expect(isBlocked(failure, 'files 1', 1e12)).toBe(true);
  expect(isBlocked(failure, 'files 2', 0)).toBe(false);
});

it('what may pass by itself is tried again after a pause that grows', () => {
  const errors = [
    new PassingLoadError('no room'),
    new ModelLoadError('m@1: any text', { [RUNNER_DIED]: true }),
    new RemudaError('store_unavailable', 'Redis is away'),
    new Error('anything'),
  ];
  for (const error of errors) {
    const first = loadFailure(error, 's', undefined, 0);
    const second = loadFailure(error, 's', first, 10_000);
    expect(first.retryAt).toBe(2_000);
    expect(second.retryAt).toBe(14_000);
    expect(isBlocked(second, 's', 13_999)).toBe(true);
    expect(isBlocked(second, 's', 14_000)).toBe(false);
  }
});

it('another try of other files begins with the first pause', () => {
  const first = loadFailure(new PassingLoadError('no room'), 's', undefined, 0);
  expect(loadFailure(new PassingLoadError('no room'), 't', first, 0).retryAt).toBe(2_000);
});
