import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { processStarted } from '@remuda/infra/process-lock';
import { afterAll, describe, expect, it } from 'vitest';
import { claimState } from './state-owner.js';

const folder = mkdtempSync(join(tmpdir(), 'remuda-state-'));
const file = join(folder, 'up.json');
afterAll(() => rmSync(folder, { recursive: true }));

describe('a state folder', () => {
  it('is ours until it is released', async () => {
    const claim = await claimState(folder);
    expect(claim.heldBy).toBeUndefined();
    expect(existsSync(file)).toBe(true);
    claim.release();
    expect(existsSync(file)).toBe(false);
  });

  it('belongs to a living process, whose claim stays', async () => {
    writeFileSync(file, JSON.stringify({ pid: process.ppid, started: processStarted(process.ppid) }));
    const claim = await claimState(folder);
    expect(claim.heldBy).toBe(process.ppid);
    claim.release();
    expect(existsSync(file)).toBe(true);
  });

  it.each([
    ['a process whose id another one has now', JSON.stringify({ pid: process.ppid, started: 'long ago' })],
    ['a half-written file', '{"pid":'],
  ])('is taken over from %s', async (_, content) => {
    writeFileSync(file, content);
    expect((await claimState(folder)).heldBy).toBeUndefined();
  });
});
