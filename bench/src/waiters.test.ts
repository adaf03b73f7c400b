/** The short form of the crowd that waits: everybody hears of the end of his own request; memory with a wide margin. */
import { expect, it } from 'vitest';
import { measureCrowd } from './parts/waiters.js';
import { Ledger } from './rig/ledger.js';
import { Rig } from './rig/rig.js';

it('everybody who waits, listens or polls on one API process hears of the end of his own request', async () => {
  const ledger = new Ledger();
  const rig = await Rig.start({ models: { real: { 'text-direction-tensor': {} } } });
  try {
    const crowd = { waiters: 60, streams: 60, pollers: 60, holdMs: 500 };
    const figures = await measureCrowd(rig, crowd, ledger);
    expect(figures.answered).toBe(180);
    expect(figures.rss_mb).toBeLessThan(600);
    expect(ledger.counts).toEqual({ accepted: 180, terminal: 180, lost: 0, doubled: 0 });
  } finally {
    await rig.stop();
  }
}, 300_000);
