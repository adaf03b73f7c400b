import { describe, expect, it } from 'vitest';
import { problemText } from './problem-text.js';

const problem = {
  type: 'urn:remuda:error:invalid_input',
  title: "An input does not fit the model's signature.",
  status: 422,
  detail: 'inputs.x.shape[1]: expected 4, received 3',
  code: 'invalid_input' as const,
  retryable: false,
};

describe('a problem as text', () => {
  it('has the code, and each finding with its path', () => {
    const errors = [
      { path: 'inputs.x.shape[1]', expected: '4', received: '3' },
      { path: '', expected: 'an object', received: 'null' },
    ];
    expect(problemText({ ...problem, errors, trace_id: 'abc' }).split('\n')).toEqual([
      "invalid_input (422): An input does not fit the model's signature.",
      '  inputs.x.shape[1]: expected 4, received 3',
      '  body: expected an object, received null',
      '  trace abc',
    ]);
  });

  it('has the near names, and says when trying again helps', () => {
    const text = problemText({
      ...problem,
      code: 'model_not_found',
      status: 404,
      detail: 'no model "text-directon"',
      retryable: true,
      suggestions: ['text-direction', 'text-recognition'],
    });
    expect(text.split('\n')).toEqual([
      'model_not_found (404): no model "text-directon"',
      '  did you mean text-direction or text-recognition?',
      '  the same call may succeed later',
    ]);
  });

  it('has the near names once, where the detail has them already', () => {
    const detail = 'there is no model "ad"; did you mean add?';
    const text = problemText({
      ...problem,
      code: 'model_not_found',
      status: 404,
      detail,
      suggestions: ['add'],
    });
    expect(text.split('\n')[0]).toBe(`model_not_found (404): ${detail}`);
    expect(text.match(/did you mean/g)).toHaveLength(1);
  });
});
