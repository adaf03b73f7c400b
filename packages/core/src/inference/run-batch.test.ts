import { describe, expect, it } from 'vitest';
import { itemError, RemudaError } from '../errors.js';
import type { UnitWrite, WriteVerdict } from '../store/outcome.js';
import { BatchRunner } from './run-batch.js';
import { type BatchOrder, type BatchReport, RunnerLostError } from './runner-life.js';
import type { BatchUnit, UnitOutcome } from './runner-protocol.js';
import { SharedGate } from './shared-gate.js';

function unit(requestId: string): BatchUnit {
  return { requestId, token: 1, item: 0, rows: 1, nonce: 'n', inline: true, traceId: 't', acceptedAt: 0 };
}

function orderOf(...names: string[]): BatchOrder {
  return { modelId: 'm@1', batchId: 'first', units: names.map(unit), workerId: 'w' };
}

function reportOf(outcomes: UnitOutcome[]): BatchReport {
  return { outcomes, fetchMs: 0, runMs: 0, writeMs: 0, runs: [] };
}

const written: UnitOutcome = { kind: 'written', ok: true, ended: 'succeeded' };

function lost(
  order: BatchOrder,
  change: Partial<ConstructorParameters<typeof RunnerLostError>[1]> = {},
  reason: 'crashed' | 'timed_out' = 'crashed',
) {
  return new RunnerLostError(
    { reason, signal: 'SIGKILL', code: null, pid: 1 },
    { batchId: order.batchId, wasRunning: true, suspect: true, suspects: 1, ...change },
  );
}

function setup(
  run: (names: string[], order: BatchOrder) => UnitOutcome[],
  triesAgain: (unit: BatchUnit) => boolean = () => false,
) {
  const runs: string[][] = [];
  const failures: { requestId: string; text: string }[] = [];
  const killers: string[][] = [];
  let ids = 0;
  const batches = new BatchRunner({
    gate: new SharedGate(),
    runner: {
      run: async (order) => {
        const names = order.units.map((one) => one.requestId);
        runs.push(names);
        return reportOf(run(names, order));
      },
    },
    store: {
      writeOutcomes: async (writes: readonly UnitWrite[]): Promise<WriteVerdict[]> =>
        writes.map((write) => {
          failures.push({ requestId: write.unit.requestId, text: write.frame.toString('latin1') });
          return { verdict: 'written', ended: 'failed' };
        }),
    },
    newBatchId: () => `b${ids++}`,
    triesAgain,
    onKilled: ({ units }) => killers.push(units.map((one) => one.requestId)),
  });
  return { batches, runs, failures, killers };
}

const names = Array.from({ length: 32 }, (_, i) => `r${i}`);

describe('a batch', () => {
  it('that ends its runner is told of, each time that nothing else can have', async () => {
    const { batches, killers } = setup((members, order) => {
      if (members.includes('b')) throw lost(order);
      return members.map(() => written);
    });
    await batches.run(orderOf('a', 'b'));
    expect(killers).toEqual([['a', 'b'], ['b']]);
  });

  it('that was lost beside another is not', async () => {
    let first = true;
    const { batches, killers } = setup((members, order) => {
      if (first) {
        first = false;
        throw lost(order, { suspects: 2 });
      }
      return members.map(() => written);
    });
    await batches.run(orderOf('a', 'b'));
    expect(killers).toEqual([]);
  });

  it('that runs is not touched', async () => {
    const { batches, runs } = setup((members) => members.map(() => written));
    const ends = await batches.run(orderOf('a', 'b'));
    expect(ends.map((end) => end.kind)).toEqual(['written', 'written']);
    expect(runs).toHaveLength(1);
  });

  it('that fails is halved until the guilty unit fails alone, with the reason; the others succeed', async () => {
    const { batches, failures } = setup((members) =>
      members.map((name) =>
        members.includes('r7')
          ? {
              kind: 'run_failed',
              alone: members.length === 1,
              error: itemError('inference_failed', 'bad r7'),
            }
          : ({ ...written, code: name } as UnitOutcome),
      ),
    );
    const ends = await batches.run(orderOf(...names));
    expect(failures).toHaveLength(1);
    expect(failures[0]?.requestId).toBe('r7');
    expect(failures[0]?.text).toContain('bad r7');
    expect(ends.filter((end) => end.kind === 'written' && end.ok)).toHaveLength(31);
    expect(ends[7]).toMatchObject({ ok: false, code: 'inference_failed' });
  });

  it('keeps what was written when only one of its runs failed', async () => {
    const { batches, runs } = setup((members) =>
      members.map((name) =>
        name.startsWith('bad') && members.length > 1
          ? { kind: 'run_failed', alone: false, error: itemError('inference_failed', 'x') }
          : written,
      ),
    );
    await batches.run(orderOf('good', 'bad1', 'bad2'));
    expect(runs).toEqual([['good', 'bad1', 'bad2'], ['bad1'], ['bad2']]);
  });
});

describe('a runner that dies', () => {
  it('costs only the unit that kills it', async () => {
    const { batches, failures } = setup((members, order) => {
      if (members.includes('r13')) throw lost(order);
      return members.map(() => written);
    });
    const ends = await batches.run(orderOf(...names));
    expect(failures.map((failure) => failure.requestId)).toEqual(['r13']);
    expect(failures[0]?.text).toContain('runner_crashed');
    expect(ends.filter((end) => end.kind === 'written' && end.ok)).toHaveLength(31);
  });

  it('by copies of a shadow is not searched for the guilty one: they end, and only the others run again', async () => {
    const { batches, runs, failures } = setup((members, order) => {
      if (members.includes('shadow.b')) throw lost(order, {}, 'timed_out');
      return members.map(() => written);
    });
    const ends = await batches.run(orderOf('shadow.a', 'c', 'shadow.b', 'd'));
    expect(failures.map((failure) => failure.requestId)).toEqual(['shadow.a', 'shadow.b']);
    expect(ends).toMatchObject([
      { code: 'run_timeout' },
      { ok: true },
      { code: 'run_timeout' },
      { ok: true },
    ]);
    expect(runs).toEqual([['shadow.a', 'c', 'shadow.b', 'd'], ['c'], ['d']]);
    runs.length = 0;
    await batches.run(orderOf('shadow.a', 'shadow.b'));
    expect(runs).toEqual([['shadow.a', 'shadow.b']]);
  });

  it('once, by a kill from outside, costs nobody anything: a single unit is tried again', async () => {
    let deaths = 0;
    const { batches, failures } = setup((members, order) => {
      if (deaths++ === 0) throw lost(order);
      return members.map(() => written);
    });
    const ends = await batches.run(orderOf('only'));
    expect(ends).toEqual([written]);
    expect(failures).toEqual([]);
  });

  it('twice with the same single unit inside: that unit fails', async () => {
    const { batches, failures } = setup((_, order) => {
      throw lost(order);
    });
    await batches.run(orderOf('poison'));
    expect(failures).toHaveLength(1);
  });

  it('while the batch was only waiting makes it no suspect: it is run again as it is', async () => {
    let deaths = 0;
    const { batches, runs } = setup((members, order) => {
      if (deaths++ === 0) throw lost(order, { wasRunning: false, suspect: false, suspects: 1 });
      return members.map(() => written);
    });
    await batches.run(orderOf('a', 'b'));
    expect(runs).toEqual([
      ['a', 'b'],
      ['a', 'b'],
    ]);
  });

  it('while several ran: each is tried once more, alone, before it is halved', async () => {
    let deaths = 0;
    const { batches, runs } = setup((members, order) => {
      if (deaths++ === 0) throw lost(order, { suspects: 2 });
      return members.map(() => written);
    });
    await batches.run(orderOf('a', 'b'));
    expect(runs).toEqual([
      ['a', 'b'],
      ['a', 'b'],
    ]);
  });

  it('with a chunk inside: it fails at once, with how far it had got, since who sent it parts it', async () => {
    const { batches, runs, failures } = setup((_, order) => {
      throw new RunnerLostError(
        { reason: 'crashed', signal: 'SIGKILL', code: null, pid: 1 },
        { batchId: order.batchId, wasRunning: true, suspect: true, suspects: 1 },
        { done: 64, running: 32 },
      );
    });
    const order = { ...orderOf('chunk'), chunk: true };
    const many = { ...order, units: order.units.map((one) => ({ ...one, rows: 100 })) };
    expect(await batches.run(many)).toMatchObject([{ kind: 'written', ok: false, code: 'runner_crashed' }]);
    expect(runs).toHaveLength(1);
    expect(failures[0]?.text).toContain('"details":{"rows_done":64,"rows_running":32}');
    // One row is blamed only when it has killed two.
    await batches.run(order);
    expect(runs).toHaveLength(3);
  });

  it('because a run took too long: the unit alone in it fails at once, as run_timeout', async () => {
    const { batches, runs, failures } = setup((_, order) => {
      throw lost(order, {}, 'timed_out');
    });
    await batches.run(orderOf('slow'));
    expect(runs).toHaveLength(1);
    expect(failures[0]?.text).toContain('run_timeout');
  });

  it('at a stop of the worker is nobody’s fault: the units are handed back', async () => {
    const { batches, failures } = setup((_, order) => {
      throw lost(order);
    });
    batches.stop();
    const ends = await batches.run(orderOf('a', 'b'));
    expect(ends.map((end) => end.kind)).toEqual(['unavailable', 'unavailable']);
    expect(failures).toEqual([]);
  });
});

it('a store or model that is not there makes units unavailable, not failed', async () => {
  const { batches, failures } = setup(() => {
    throw new RemudaError('store_unavailable', 'Redis is away');
  });
  const ends = await batches.run(orderOf('a'));
  expect(ends[0]).toMatchObject({ kind: 'unavailable', error: { code: 'store_unavailable' } });
  expect(failures).toEqual([]);
});

it('an item that is to have another attempt is not written: it is unavailable, and its batch mates are not', async () => {
  const failing = ['b', 'c'];
  const { batches, failures } = setup(
    (members) =>
      members.map(
        (name): UnitOutcome =>
          failing.includes(name)
            ? { kind: 'run_failed', alone: members.length === 1, error: itemError('inference_failed', 'no') }
            : written,
      ),
    (one) => one.requestId === 'b',
  );
  const ends = await batches.run(orderOf('a', 'b', 'c'));
  expect(ends.map(({ kind }) => kind)).toEqual(['written', 'unavailable', 'written']);
  expect(failures.map(({ requestId }) => requestId)).toEqual(['c']);
});
