import { describe, expect, it } from 'vitest';
import { distinctProblems } from './model-problems.js';

describe('problems of a model', () => {
  it('are told once where the repository and the workers have met the same', () => {
    const fault = 'noyaml/model.yaml: is missing';
    const other = 'noyaml@2 on worker w2: out of memory';
    expect(
      distinctProblems([
        fault,
        `noyaml on worker w1: ${fault}`,
        other,
        'noyaml@2 on worker w3: out of memory',
      ]),
    ).toEqual([fault, other]);
  });
});
