import { describe, expect, it } from 'vitest';
import { extraLines } from './extra-text.js';

const outcome = { index: 0, status: 'succeeded', outputs: {}, error: null, metrics: null };

describe('model_extra', () => {
  it('is a line for each name', () => {
    const model_extra = { feels: ['cold', 'warm'], unit: 'F', box: [{ x: 1 }] };
    expect(extraLines([{ ...outcome, id: null, model_extra }], false)).toEqual([
      'feels cold, warm',
      'unit F',
      'box [{"x":1}]',
    ]);
  });

  it('says whose it is, and is cut where it is long', () => {
    const [line = ''] = extraLines(
      [{ ...outcome, id: 'a.png', model_extra: { text: 'x'.repeat(500) } }],
      true,
    );
    expect(line).toMatch(/^a\.png: text x{100}…$/);
  });
});
