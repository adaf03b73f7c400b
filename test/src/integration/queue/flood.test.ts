/** One tenant's flood and another's single request, through a real queue and a worker whose batches end when told. */
import type { BatchOrder } from '@remuda/core/inference/runner-process';
import type { JobTicket } from '@remuda/core/queue/job-queue';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { LightFleet, modelFiles } from '../../support/light-fleet.js';
import { until } from '../requests/rig.js';

const PARTITION = { model: 'm', deviceClass: 'cpu', lane: 'interactive' } as const;
const BATCH = 8;
const FLOOD = 10_000;

let fleet: LightFleet;
let batches: { tenants: Set<string>; end(): void }[];
let holding: boolean;
const tenantOf = (requestId: string): string => requestId.split('-')[0] as string;

beforeEach(() => {
  fleet = new LightFleet(modelFiles('m', [1], `max_batch_size: ${BATCH}\ninstances: 1`));
  batches = [];
  holding = true;
});
afterEach(async () => {
  holding = false;
  for (const { end } of batches) end();
  await fleet.stop();
});

/** Holds each batch until it is ended by hand. */
function hold({ units }: BatchOrder): Promise<void> {
  return new Promise((resolve) => {
    batches.push({ tenants: new Set(units.map(({ requestId }) => tenantOf(requestId))), end: resolve });
    if (!holding) resolve();
  });
}

async function send(tenant: string, count: number, change: Partial<JobTicket> = {}): Promise<void> {
  const tickets = Array.from({ length: count }, (_, at) => ({
    requestId: `${tenant}-${batches.length}-${at}`,
    ...{ nonce: 'n', version: '1', traceId: 't', acceptedAt: Date.now(), deadline: 0, priority: 5 },
    ...{ inline: false, units: [[1, 1, 'g']] as JobTicket['units'], tokenBase: 0, tenant },
    ...change,
  }));
  for (let at = 0; at < count; at += 1_000)
    await fleet.queues.of(PARTITION).addMany(tickets.slice(at, at + 1_000));
}

/** Ends the batch that runs, and waits until the one behind the next is handed on. */
async function endNext(ended: number): Promise<void> {
  batches[ended]?.end();
  await until('another batch is handed on', () => batches.length > ended + 2);
}

it.each([5, 0])(
  '10,000 of priority %i that wait delay a single request of another tenant by two batches: the one that runs, the one ahead',
  async (priority) => {
    // So long a run that the refill is always awaited: no part of this asks how fast the machine is.
    await fleet.addWorker({ onRun: hold, runSeconds: 10_000 });
    await fleet.until('worker-0', ['m', '1'], ({ state }) => state === 'ready');
    await send('flood', FLOOD, { priority });
    await until('one batch runs, one is ahead', () => batches.length === 2);
    for (let ended = 0; ended < 5; ended++) await endNext(ended);
    expect((await fleet.queues.of(PARTITION).depth()).waiting).toBeGreaterThan(FLOOD - 20 * BATCH);

    for (let round = 0; round < 3; round++) {
      // One runs, one is handed on ahead of time; nothing else has begun.
      const ended = 5 + 3 * round;
      expect(batches.length - ended).toBe(2);
      await send('single', 1, { priority: round === 2 ? 9 : 5 });
      await endNext(ended);
      expect([...(batches[ended + 2]?.tenants ?? [])]).toContain('single');
      for (let at = 1; at < 3; at++) await endNext(ended + at);
    }
  },
);
