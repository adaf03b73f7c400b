/** The log alone gives the way of a request, from its trace id. */
import { describe, expect, it } from 'vitest';
import { LIFE_EVENTS, type LifeLogOptions, lifeLog, wayOf } from './events.js';
import { createLogger, type LogLevel } from './logger.js';

function setup(level: LogLevel = 'info', options: LifeLogOptions = {}) {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  return { life: lifeLog(createLogger({ name: 'test', level, destination }), options), lines };
}

const [a, b] = ['a'.repeat(32), '0'.repeat(31).concat('b')];
const one = { trace_id: a, request_id: 'req_a' };
const batch = { batch_id: 'bat_1', trace_ids: [a, b] };

describe('the life events', () => {
  it('are a closed list', () => {
    expect(LIFE_EVENTS).toMatchSnapshot();
  });

  it('tell the way of one request among others, its neighbours in the batch included', () => {
    const { life, lines } = setup();
    life.accepted({ ...one, model: 'm', version: '1', tenant: 'default', items: 1, rows: 1 });
    life.routed({ ...one, device_class: 'cpu', lane: 'interactive', reasons: ['only cpu is allowed'] });
    life.enqueued({ ...one, queue: 'm.cpu.interactive' });
    life.enqueued({ trace_id: b, request_id: 'req_b', queue: 'm.cpu.interactive' });
    life.picked_up({ ...one, worker_id: 'w', queue: 'm.cpu.interactive', attempt: 1 });
    life.batched({
      ...batch,
      request_ids: ['req_a', 'req_b'],
      model: 'm',
      version: '1',
      rows: 2,
      worker_id: 'w',
      device: 'cpu',
    });
    life.run({ ...batch, rows: 2, run_ms: 1.5 });
    life.written({ ...batch, succeeded: 2, failed: 0, dropped: 0, write_ms: 0.5 });
    life.delivered({ ...one, status: 'succeeded', by: 'wait' });

    const way = wayOf(a, lines);
    expect(way.map((step) => step.event)).toEqual([
      'accepted',
      'routed',
      'enqueued',
      'picked_up',
      'batched',
      'run',
      'written',
      'delivered',
    ]);
    expect(way.find((step) => step.event === 'batched')).toMatchObject({ request_ids: ['req_a', 'req_b'] });
    expect(wayOf(b, lines)).toHaveLength(4);
  });

  it('are put in the order of time, from the lines of several processes', () => {
    const line = (event: string, time: string) => JSON.stringify({ event, time, trace_id: a });
    const lines = [line('run', '2026-01-01T00:00:02.000Z'), line('accepted', '2026-01-01T00:00:01.000Z')];
    expect(wayOf(a, [...lines, JSON.stringify({ msg: `other ${a}` })]).map((step) => step.event)).toEqual([
      'accepted',
      'run',
    ]);
  });

  it('are silent at level warn, except those about trouble', () => {
    const { life, lines } = setup('warn');
    life.delivered({ ...one, status: 'succeeded', by: 'poll' });
    expect(life.enabled).toBe(false);
    life.fenced({ ...one, worker_id: 'w', token: 1 });
    expect(wayOf(a, lines).map((step) => step.event)).toEqual(['fenced']);
  });

  it('can be sampled: a trace is told from end to end or not at all', () => {
    const { life, lines } = setup('info', { sample: 0.5 });
    life.enqueued({ ...one, queue: 'q' });
    life.delivered({ ...one, status: 'succeeded', by: 'poll' });
    life.enqueued({ trace_id: b, request_id: 'req_b', queue: 'q' });
    life.run({ ...batch, rows: 2, run_ms: 1 });
    life.run({ batch_id: 'bat_2', trace_ids: [a], rows: 1, run_ms: 1 });
    life.retried({ ...one, attempt: 1, code: 'internal', delay_ms: 5 });
    expect(wayOf(b, lines).map((step) => step.event)).toEqual(['enqueued', 'run']);
    // Only what is said about its neighbour, and trouble, which is always told.
    expect(wayOf(a, lines).map((step) => step.event)).toEqual(['run', 'retried']);
  });
});
