import type { Quota } from '@remuda/core/requests/quota';
import Fastify from 'fastify';
import { describe, expect, it } from 'vitest';
import { addRateLimitFields, limitItem, policyItem, violatedPolicies } from './rate-limit-fields.js';

const rate: Quota = {
  policy: 'key-rate',
  limit: 100,
  unit: 'requests',
  windowS: 60,
  remaining: 12,
  resetS: 3.2,
  violated: false,
};
const room: Quota = {
  policy: 'queue-requests',
  limit: 500,
  unit: 'concurrent-requests',
  remaining: 0,
  violated: true,
};

describe('a quota as an item of the RateLimit fields', () => {
  it('has its window where it has one, and no unit where it counts requests', () => {
    expect(policyItem(rate)).toBe('"key-rate";q=100;w=60');
    expect(limitItem(rate)).toBe('"key-rate";r=12;t=4');
  });

  it('names what it counts where that is no request within a time', () => {
    expect(policyItem(room)).toBe('"queue-requests";q=500;qu="concurrent-requests"');
    expect(limitItem(room)).toBe('"queue-requests";r=0');
  });

  it('never says less than nothing', () => {
    expect(limitItem({ ...room, remaining: -3 })).toBe('"queue-requests";r=0');
  });
});

it('the policies that refused a call are those that it went over', () => {
  expect(violatedPolicies([rate, room])).toEqual(['queue-requests']);
});

it('two limits that speak one after the other stand in one list', async () => {
  const app = Fastify();
  app.get('/', (_request, reply) => {
    addRateLimitFields(reply, [rate]);
    addRateLimitFields(reply, []);
    addRateLimitFields(reply, [room]);
    return reply.send('');
  });
  const { headers } = await app.inject('/');
  expect(headers.ratelimit).toBe('"key-rate";r=12;t=4, "queue-requests";r=0');
  expect(headers['ratelimit-policy']).toBe(
    '"key-rate";q=100;w=60, "queue-requests";q=500;qu="concurrent-requests"',
  );
  await app.close();
});
