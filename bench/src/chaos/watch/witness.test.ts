import { beforeEach, describe, expect, it } from 'vitest';
import { showsFenced, Witness, type WitnessedRequest } from './witness.js';

let witness: Witness;
const KEY = 'remuda:{r0}:q:a';

beforeEach(() => {
  witness = new Witness({ keyPrefix: 'remuda', now: () => 5 });
});

function see(...command: string[]): void {
  witness.see([command.map((part) => Buffer.from(part))]);
}

function frameOf(worker: string): string {
  return `\x20\0\0\0{"outputs":[],"metrics":{"worker_id":"${worker}"}}`;
}

const seen = () => witness.requests.get('a') as WitnessedRequest;

describe('the witness', () => {
  it('follows a request from acceptance to its one end', () => {
    see('HSET', KEY, 's', 'queued', 'nonce', 'n');
    expect([...witness.open]).toEqual(['a']);
    see('HSET', KEY, 's', 'running', 'tok', '1', 'w', 'w1');
    expect(witness.heldBy('w1')).toEqual(['a']);
    see('HSETNX', KEY, 'o:0', frameOf('w1'));
    see('HSET', KEY, 's', 'succeeded', 'fin', '1');
    expect(seen()).toMatchObject({ status: 'succeeded', ends: ['succeeded'], rewritten: 0, endedAt: 5 });
    expect(showsFenced(seen())).toBeNull();
    expect(witness.open.size).toBe(0);
  });

  it('counts an end that comes twice, and an outcome behind the end', () => {
    see('HSET', KEY, 's', 'queued');
    see('HSET', KEY, 's', 'succeeded');
    see('HSET', KEY, 's', 'failed');
    see('HSET', KEY, 'o:0', frameOf('w1'));
    expect(seen()).toMatchObject({ ends: ['succeeded', 'failed'], rewritten: 1 });
  });

  it('sees the outcome of a worker that had lost the request to another', () => {
    see('HSET', KEY, 's', 'running', 'tok', '1', 'w', 'w1');
    see('HSET', KEY, 'tok', '2', 'w', 'w2');
    see('HSETNX', KEY, 'o:0', frameOf('w1'));
    expect(showsFenced(seen())).toEqual({ writer: 'w1', holder: 'w2' });
  });

  it('does not take a request that nobody has run for one that was lost: its deadline had passed', () => {
    see('HSET', KEY, 's', 'queued');
    see('HSETNX', KEY, 'o:0', frameOf('w2'));
    see('HSET', KEY, 's', 'expired');
    expect(showsFenced(seen())).toBeNull();
  });

  it('takes what comes after a withdrawal for another request, and leaves other keys alone', () => {
    see('HSET', KEY, 's', 'failed');
    see('UNLINK', 'remuda:{r0}:p:a:n:0', KEY);
    expect(witness.requests.size).toBe(0);
    see('HSET', KEY, 's', 'queued');
    see('HSET', 'remuda:queue:{m/cpu/interactive}:a', 's', 'failed');
    expect(seen().ends).toEqual([]);
  });
});
