/** The door: what is over a limit is refused before anything is stored, and let in again when there is room. */
import { RemudaError } from '@remuda/core/errors';
import { systemClock } from '@remuda/core/lifecycle/clock';
import { quotasOf } from '@remuda/core/requests/quota';
import { partitionField } from '@remuda/core/store/usage';
import type { TenantLimits } from '@remuda/schemas';
import { afterEach, describe, expect, it } from 'vitest';
import { alive } from './fleet-facts.js';
import {
  answer,
  type Rig,
  type RigOptions,
  type SubmissionOptions,
  setup,
  submission,
  until,
} from './rig.js';

const QUEUE = partitionField('model', 'cpu', 'interactive');

const rigs: Rig[] = [];
afterEach(async () => {
  for (const rig of rigs.splice(0).reverse()) await rig.close();
});

async function api(options: RigOptions): Promise<Rig> {
  const rig = await setup({ random: () => 0.5, ...options });
  rigs.push(rig);
  return rig;
}

/** Code of the refusal, or the id of what was accepted. */
async function send(rig: Rig, options: SubmissionOptions = {}): Promise<string> {
  try {
    return (await rig.cases.submit(submission(options))).record.request_id;
  } catch (error) {
    return (error as RemudaError).code;
  }
}

const sendMany = (rig: Rig, count: number, options?: SubmissionOptions): Promise<string[]> =>
  Promise.all(Array.from({ length: count }, () => send(rig, options)));

const isRefusal = (outcome: string): boolean =>
  outcome === 'over_capacity' || outcome === 'tenant_over_quota';
const taken = (outcomes: readonly string[]): string[] => outcomes.filter((outcome) => !isRefusal(outcome));

describe('a queue', () => {
  it('over its rows or its bytes takes no more, whatever the number of requests', async () => {
    const rows = await api({ limits: { rows: 4 } });
    expect(taken(await sendMany(rows, 5, { values: [1, 2] }))).toHaveLength(2);
    const bytes = await api({ limits: { bytes: 100_000 } });
    expect(taken(await sendMany(bytes, 5, { width: 10_000 }))).toHaveLength(3);
  });

  it('stops a burst within one tick, and stores nothing of what it refused', async () => {
    const rig = await api({ limits: { requests: 10 } });
    const outcomes = await sendMany(rig, 50);
    expect(taken(outcomes)).toHaveLength(10);
    expect(await rig.store.countOpen()).toBe(10);
    expect((await rig.store.allUsage()).get(QUEUE)?.requests).toBe(10);
  });

  it('stops it in a batch as well', async () => {
    const rig = await api({ limits: { requests: 10 } });
    const outcomes = await rig.cases.submitMany(Array.from({ length: 50 }, () => submission()));
    expect(outcomes.filter((one) => one instanceof RemudaError)).toHaveLength(40);
  });

  it('takes more as soon as something has ended', async () => {
    const rig = await api({ limits: { requests: 2 } });
    const [first] = await sendMany(rig, 2);
    expect(await send(rig)).toBe('over_capacity');
    await answer(rig.store, first as string, ['ok']);
    await until('there is room', async () => !isRefusal(await send(rig)));
    expect((await rig.store.allUsage()).get(QUEUE)?.requests).toBe(2);
  });

  it('does not refuse by what was so before a pause', async () => {
    let now = Date.now();
    const rig = await api({ limits: { requests: 2 }, clock: { ...systemClock, now: () => now } });
    const accepted = await sendMany(rig, 2);
    expect(await send(rig)).toBe('over_capacity');
    for (const id of accepted) await answer(rig.store, id, ['ok']);
    for (const pauseMs of [2_000, 20_000]) {
      now += pauseMs;
      expect(rig.cases.refusal('model', 'interactive', 'default')).toBeUndefined();
      const id = await send(rig);
      expect(isRefusal(id)).toBe(false);
      await answer(rig.store, id, ['ok']);
    }
  });

  it('one request may go over, so that none is too large to come in ever', async () => {
    const rig = await api({ limits: { rows: 2 } });
    expect(isRefusal(await send(rig, { values: [1, 2, 3, 4] }))).toBe(false);
    expect(await send(rig)).toBe('over_capacity');
  });

  it('says which limit it was, what is left, and when to come back', async () => {
    const rig = await api({ limits: { requests: 2 } });
    const [first] = await sendMany(rig, 2);
    const error = await rig.cases.submit(submission()).catch((reason: unknown) => reason as RemudaError);
    expect(error).toMatchObject({
      code: 'over_capacity',
      message: 'the queue of model on cpu (interactive) holds 2 of at most 2 requests',
      // Nothing is measured yet.
      details: { retry_after_s: 10, used: 2, limit: 2 },
    });
    expect(quotasOf((error as RemudaError).details)).toEqual([
      {
        policy: 'queue-requests',
        unit: 'concurrent-requests',
        limit: 2,
        remaining: 0,
        violated: true,
        resetS: 10,
      },
    ]);
    await answer(rig.store, first as string, ['ok']);
    await until('there is room', async () => !isRefusal(await send(rig)));
  });

  it('tells who is accepted of the limit that is nearest', async () => {
    const rig = await api({ limits: { requests: 100, rows: 5 } });
    const { quotas } = await rig.cases.submit(submission({ values: [1, 2] }));
    expect(quotas).toEqual([{ policy: 'queue-rows', unit: 'rows', limit: 5, remaining: 3, violated: false }]);
  });
});

describe('a queue whose wait is limited', () => {
  it('takes what the workers can do in that time, as they were measured', async () => {
    const rig = await api({ limits: { waitS: 2 } });
    await alive(rig, 'w1', [{ seconds_per_row: 0.1 }]);
    const outcomes: string[] = [];
    for (let i = 0; i < 25; i++) outcomes.push(await send(rig));
    expect(taken(outcomes)).toHaveLength(20);
    const error = await rig.cases.submit(submission()).catch((reason: unknown) => reason as RemudaError);
    expect(error).toMatchObject({
      message: 'the queue of model on cpu (interactive) holds 2.0 of at most 2 s of expected wait',
      details: { retry_after_s: 1 },
    });
  });

  it('takes everything where nothing is measured', async () => {
    const rig = await api({ limits: { waitS: 0.001 } });
    expect(taken(await sendMany(rig, 5))).toHaveLength(5);
  });
});

describe('two API processes on one Redis', () => {
  it('that take turns go over a limit by one at most: the answer about one request tells of all', async () => {
    const one = await api({ limits: { requests: 10 } });
    const two = await api({ limits: { requests: 10 }, prefix: one.keys.space.prefix });
    const outcomes: string[] = [];
    for (let i = 0; i < 12; i++) outcomes.push(await send(one), await send(two));
    expect([10, 11]).toContain(taken(outcomes).length);
  });

  it('in one burst go over it by no more than what each lets in by itself', async () => {
    const one = await api({ limits: { requests: 10 } });
    const two = await api({ limits: { requests: 10 }, prefix: one.keys.space.prefix });
    const outcomes = (await Promise.all([sendMany(one, 100), sendMany(two, 100)])).flat();
    const accepted = taken(outcomes).length;
    expect(accepted).toBeGreaterThanOrEqual(10);
    expect(accepted).toBeLessThanOrEqual(20);
    expect(await one.store.countOpen()).toBe(accepted);
    // And what they know then, they know.
    expect(taken((await Promise.all([sendMany(one, 20), sendMany(two, 20)])).flat())).toEqual([]);
  });
});

describe('a tenant', () => {
  const none: TenantLimits = { max_waiting: null, max_waiting_rows: null, max_waiting_bytes: null };
  const limits: Record<string, Partial<TenantLimits>> = {
    small: { max_waiting: 3 },
    rows: { max_waiting_rows: 4 },
    shut: { max_waiting: 0 },
  };
  const limitsOf = (tenant: string): TenantLimits => ({ ...none, ...limits[tenant] });

  it('that has as much as it may have is refused, and no other', async () => {
    const rig = await api({ limitsOf });
    expect(taken(await sendMany(rig, 10, { tenant: 'small' }))).toHaveLength(3);
    expect(taken(await sendMany(rig, 5, { tenant: 'rows', values: [1, 2] }))).toHaveLength(2);
    expect(taken(await sendMany(rig, 10, { tenant: 'other' }))).toHaveLength(10);
    expect(await send(rig, { tenant: 'shut' })).toBe('tenant_over_quota');
  });

  it('is counted over all its queues, and told so', async () => {
    const rig = await api({ limitsOf });
    await sendMany(rig, 3, { tenant: 'small' });
    const error = await rig.cases
      .submit(submission({ tenant: 'small' }))
      .catch((reason: unknown) => reason as RemudaError);
    expect(error).toMatchObject({
      code: 'tenant_over_quota',
      message: 'tenant small has not ended 3 of at most 3 requests',
    });
    const { quotas } = await rig.cases.submit(submission({ tenant: 'rows' }));
    expect(quotas.map(({ policy, remaining }) => [policy, remaining])).toEqual([
      ['queue-requests', 49_996],
      ['tenant-rows', 3],
    ]);
  });
});

describe('what is said before a request is read', () => {
  // Stands still: what was read a second ago is not refused by, and a slow machine may take that long.
  let now = Date.now();
  const clock = { ...systemClock, now: () => now };
  const refusal = (rig: Rig, tenant = 'default'): string | undefined =>
    rig.cases.refusal('model', 'interactive', tenant)?.code;

  it('is nothing while there is room, or nothing is known', async () => {
    const rig = await api({ limits: { requests: 2 } });
    expect(refusal(rig)).toBeUndefined();
    await send(rig);
    expect(refusal(rig)).toBeUndefined();
  });

  it('is the refusal where every queue of the model is full, until there is room', async () => {
    const rig = await api({ limits: { requests: 2 }, clock });
    const [first] = await sendMany(rig, 2);
    expect(refusal(rig)).toBe('over_capacity');
    expect(rig.cases.refusal('other', 'interactive', 'default')).toBeUndefined();
    await answer(rig.store, first as string, ['ok']);
    now += 100;
    await until('there is room', () => refusal(rig) === undefined);
  });

  it('is nothing where one class on which the model is live has room', async () => {
    const rig = await api({ limits: { requests: 2 } });
    await sendMany(rig, 2);
    await alive(rig, 'gpu', [{ device: 'cuda:0' }]);
    // Its queue is asked about; nothing is known of it meanwhile.
    expect(refusal(rig)).toBeUndefined();
    const { usage } = rig.cases.admission;
    await until(
      'it is known to be empty',
      () => usage.peek(partitionField('model', 'cuda', 'interactive')) !== undefined,
    );
    expect(refusal(rig)).toBeUndefined();
  });

  it('is the refusal of a tenant over its quota, for every model', async () => {
    const limitsOf = (): TenantLimits => ({
      max_waiting: 1,
      max_waiting_rows: null,
      max_waiting_bytes: null,
    });
    const rig = await api({ limitsOf, clock });
    await send(rig, { tenant: 'acme' });
    expect(rig.cases.refusal(undefined, 'interactive', 'acme')?.code).toBe('tenant_over_quota');
    expect(refusal(rig, 'other')).toBeUndefined();
  });
});
