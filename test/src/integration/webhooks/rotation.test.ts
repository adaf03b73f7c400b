/** The signing secret of a tenant: made once, shown, rotated with an overlap in which both sign. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Rig, setup } from './rig.js';

let rig: Rig;
beforeEach(async () => {
  rig = await setup();
});
afterEach(() => rig.close());

const HOUR = 3_600_000;

it('is made once, whoever asks first', async () => {
  const made = await Promise.all(Array.from({ length: 8 }, () => rig.cases.webhooks.secret('acme')));
  expect(new Set(made.map(({ secret }) => secret)).size).toBe(1);
  expect(made[0]).toMatchObject({ tenant: 'acme', previous_until: null });
  expect((await rig.cases.webhooks.secret('other')).secret).not.toBe(made[0]?.secret);
});

describe('after a rotation', () => {
  it('both secrets sign: who knows either can verify', async () => {
    const before = await rig.cases.webhooks.secret('default');
    const after = await rig.cases.webhooks.rotateSecret('default', 3_600);
    expect(after.secret).not.toBe(before.secret);
    await rig.deliver();
    await rig.ended('rotated', rig.sink.url);
    const [received] = await rig.sink.count(1);
    expect(String(received?.headers['webhook-signature']).split(' ')).toHaveLength(2);
    await rig.verified(received, before.secret);
    await rig.verified(received, after.secret);
  });

  it('the one before ends with the overlap', async () => {
    const now = Date.now();
    const { secrets } = rig.parts;
    const first = await secrets.describe('t', now);
    const second = await secrets.rotate('t', HOUR, now);
    expect(await secrets.valid('t', now + HOUR - 1)).toEqual([second.secret, first.secret]);
    expect(await secrets.valid('t', now + HOUR)).toEqual([second.secret]);
    expect(Date.parse(second.previous_until as string)).toBe(now + HOUR);
  });

  it('a second one within the overlap leaves all of them valid', async () => {
    const now = Date.now();
    const { secrets } = rig.parts;
    const first = await secrets.describe('t', now);
    const second = await secrets.rotate('t', HOUR, now);
    const third = await secrets.rotate('t', HOUR, now + 1_000);
    expect(await secrets.valid('t', now + 2_000)).toEqual([third.secret, second.secret, first.secret]);
  });

  it('without an overlap none before signs any more', async () => {
    const now = Date.now();
    const { secrets } = rig.parts;
    await secrets.rotate('t', HOUR, now);
    const last = await secrets.rotate('t', 0, now);
    expect(await secrets.valid('t', now)).toEqual([last.secret]);
  });
});
