/** Calls whose route, query, headers or names are wrong. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inputs } from './bad-cases.js';
import { type Rig, setup } from './rig.js';

let rig: Rig;
beforeAll(async () => {
  rig = await setup();
});
afterAll(() => rig.close());

describe('a bad call', () => {
  it.each<[string, string, string, Record<string, string>, number, string, string | undefined]>([
    ['an unknown model', 'POST', '/v1/models/row/requests', {}, 404, 'model_not_found', undefined],
    ['an unknown route', 'GET', '/v2/requests', {}, 404, 'route_not_found', undefined],
    [
      'a method that a route does not have',
      'PUT',
      '/v1/requests/abc',
      {},
      405,
      'method_not_allowed',
      undefined,
    ],
    ['an unknown request', 'GET', '/v1/requests/req_nobody', {}, 404, 'request_not_found', undefined],
    ['an id that none can have', 'GET', '/v1/requests/0%3A%7B%7D', {}, 404, 'request_not_found', undefined],
    [
      'the result of an unknown request',
      'GET',
      '/v1/requests/req_nobody/result',
      {},
      404,
      'request_not_found',
      undefined,
    ],
    [
      'the end of an unknown request',
      'DELETE',
      '/v1/requests/req_nobody',
      {},
      404,
      'request_not_found',
      undefined,
    ],
    ['a wait that is too long', 'GET', '/v1/requests/abc?wait=61', {}, 422, 'invalid_request', 'query.wait'],
    [
      'a wait that is no number',
      'GET',
      '/v1/requests/abc?wait=soon',
      {},
      422,
      'invalid_request',
      'query.wait',
    ],
    ['an unknown filter', 'GET', '/v1/requests?stauts=queued', {}, 422, 'invalid_request', 'query.stauts'],
    ['a status that is none', 'GET', '/v1/requests?status=done', {}, 422, 'invalid_request', 'query.status'],
    ['a cursor that is none', 'GET', '/v1/requests?cursor=AAAA', {}, 422, 'invalid_request', 'query.cursor'],
    [
      'a form of answer that is not given',
      'POST',
      '/v1/models/rows/requests',
      { accept: 'text/html' },
      406,
      'not_acceptable',
      undefined,
    ],
    [
      'a preference that says no time',
      'POST',
      '/v1/models/rows/requests',
      { prefer: 'wait=long' },
      422,
      'invalid_request',
      'Prefer',
    ],
    ['a URL that cannot be read', 'GET', '/v1/requests/%E0%A4%A', {}, 404, 'route_not_found', undefined],
  ])('is refused: %s', async (_, method, path, headers, status, code, at) => {
    const init = method === 'POST' ? inputs([1, 2, 3]) : {};
    const answer = await rig.call(method, path, { ...init, headers: { ...init.headers, ...headers } });
    expect(answer.body).toMatchObject({ status, code });
    expect(answer.status).toBe(status);
    expect(answer.body.errors?.[0]?.path).toBe(at);
  });

  it('names what may have been meant', async () => {
    const answer = await rig.post('/v1/models/row/requests', { inputs: { x: [1, 2, 3] } });
    expect(answer.body.suggestions).toEqual(['rows']);
  });

  it('tells the methods that a route has', async () => {
    const answer = await rig.call('PATCH', '/v1/requests:batch');
    expect(answer.headers.get('allow')).toBe('POST');
  });
});
