import { describe, expect, it } from 'vitest';
import { editDistance, nearNames } from './near-names.js';

const models = ['text-direction', 'text-direction-tensor', 'text-recognition', 'speech-detector', 'add'];

describe('nearNames', () => {
  it.each([
    ['text-dirction', ['text-direction']],
    ['text', ['text-direction', 'text-direction-tensor', 'text-recognition']],
    ['Text-Recognition', ['text-recognition']],
    ['text-direction-v2', ['text-direction']],
    ['speech_detector', ['speech-detector']],
    ['ad', ['add']],
    ['resnet50', []],
    ['', []],
  ])('%j may have meant %j', (name, wanted) => expect(nearNames(name, models)).toEqual(wanted));
});

describe('editDistance', () => {
  it.each([
    ['', 'abc', 3],
    ['abc', 'abc', 0],
    ['kitten', 'sitting', 3],
    ['batch', 'bacth', 2],
  ])('of %j and %j is %d', (a, b, distance) => {
    expect(editDistance(a, b)).toBe(distance);
    expect(editDistance(b, a)).toBe(distance);
  });
});
