/** A role of the fleet over a real Redis: who has it, who gets it next, and what a turn that is asked for becomes. */
import { LeasedRole } from '@remuda/core/fleet/leased-role';
import { Deferred } from '@remuda/core/inference/deferred';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Rig, setup } from '../requests/rig.js';

let rig: Rig;
let roles: LeasedRole[];
beforeEach(async () => {
  rig = await setup();
  roles = [];
});
afterEach(async () => {
  for (const role of roles) await role.stop();
  await rig.close();
});

const key = (): string => `${rig.keys.space.prefix}:some-role`;

function newRole(turn: () => Promise<void>): LeasedRole {
  const onError = (error: Error): never => {
    throw error;
  };
  const fixed = { name: 'role', redis: rig.redis, leaseMs: 60_000, everyMs: 60_000, onError };
  const role = new LeasedRole({ ...fixed, key: key(), turn });
  roles.push(role);
  return role;
}

it('is had by one process at a time, and by another once that one has stopped', async () => {
  const turns: string[] = [];
  const first = newRole(async () => void turns.push('first'));
  const second = newRole(async () => void turns.push('second'));
  await first.turn();
  await second.turn();
  await first.turn();
  expect(turns).toEqual(['first', 'first']);
  await first.stop();
  await second.turn();
  expect(turns).toEqual(['first', 'first', 'second']);
});

it('is not taken from another by who has lost it and stops', async () => {
  const late = newRole(async () => {});
  await late.turn();
  await rig.redis.set(key(), 'another');
  await late.stop();
  expect(await rig.redis.get(key())).toBe('another');
});

it('takes one turn after the one under way, however often it was asked meanwhile', async () => {
  const gates = [new Deferred<void>(), new Deferred<void>()];
  let begun = 0;
  const role = newRole(() => gates[begun++]?.promise ?? Promise.resolve());
  const whole = role.turn();
  await expect.poll(() => begun).toBe(1);
  for (let i = 0; i < 5; i++) role.nudge();
  expect(begun).toBe(1);
  gates[0]?.resolve();
  gates[1]?.resolve();
  await whole;
  expect(begun).toBe(2);
});
