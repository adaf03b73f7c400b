import { describe, expect, it } from 'vitest';
import { BULK, INTERACTIVE, type LaneRank, LaneShare } from './lane-share.js';
import { sequence } from './simulated-queue.fixture.js';

const MOST = 32;

/** Batches closed while both lanes wait, bulk's full; what interactive leaves is filled by bulk now and then. */
function contended(share: number, count: number, seed: number): { lead: LaneRank; rows: [number, number] }[] {
  const random = sequence(seed);
  const lanes = new LaneShare(share);
  return Array.from({ length: count }, () => {
    const lead = lanes.next([true, true]);
    const fromInteractive = lead === BULK ? 0 : MOST - (random(3) === 0 ? random(MOST) : 0);
    const rows: [number, number] = [fromInteractive, MOST - fromInteractive];
    lanes.closed(lead, rows, true, MOST);
    return { lead, rows };
  });
}

describe('the lanes of a model, while both wait', () => {
  it('leave bulk at least its share over any stretch of batches, to within one batch', () => {
    for (const share of [0.02, 0.1, 0.25, 0.5]) {
      for (let seed = 1; seed <= 5; seed++) {
        const batches = contended(share, 400, seed);
        let least = 0;
        for (let from = 0; from < batches.length; from += 7) {
          let ahead = 0;
          for (const { rows } of batches.slice(from)) {
            ahead += rows[BULK] - share * (rows[INTERACTIVE] + rows[BULK]);
            least = Math.min(least, ahead);
          }
        }
        expect(least).toBeGreaterThanOrEqual(-MOST);
      }
    }
  });

  it('give bulk no more than its share, to within one batch, where interactive fills its own batches', () => {
    const lanes = new LaneShare(0.1);
    let [bulk, all] = [0, 0];
    for (let at = 0; at < 500; at++) {
      const lead = lanes.next([true, true]);
      lanes.closed(lead, lead === BULK ? [0, MOST] : [MOST, 0], true, MOST);
      bulk += lead === BULK ? MOST : 0;
      all += MOST;
      expect(Math.abs(bulk - 0.1 * all)).toBeLessThanOrEqual(MOST);
    }
  });

  it('never let interactive rows wait for two batches of bulk, however small those are', () => {
    for (const rows of [1, 5, MOST]) {
      const lanes = new LaneShare(0.5);
      let inARow = 0;
      for (let at = 0; at < 200; at++) {
        const lead = lanes.next([true, true]);
        lanes.closed(lead, lead === BULK ? [0, rows] : [MOST, 0], true, MOST);
        inARow = lead === BULK ? inARow + 1 : 0;
        expect(inARow).toBeLessThanOrEqual(1);
      }
    }
  });

  it('begin with interactive, after bulk had everything to itself too', () => {
    const lanes = new LaneShare(0.1);
    for (let at = 0; at < 10; at++) {
      expect(lanes.next([false, true])).toBe(BULK);
      lanes.closed(BULK, [0, MOST], false, MOST);
    }
    expect(lanes.next([true, true])).toBe(INTERACTIVE);
  });

  it('give bulk what interactive leaves and nothing else where its share is 0', () => {
    const lanes = new LaneShare(0);
    for (let at = 0; at < 50; at++) {
      expect(lanes.next([true, true])).toBe(INTERACTIVE);
      lanes.closed(INTERACTIVE, [MOST, 0], true, MOST);
    }
    expect(lanes.next([false, true])).toBe(BULK);
  });
});
