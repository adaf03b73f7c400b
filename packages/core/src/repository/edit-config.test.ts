import { describe, expect, it } from 'vitest';
import { editConfig } from './edit-config.js';

const YAML = `# The classifier.
harness: onnx
max_batch_size:   4 # the working set of four rows stays in the cache

instances: 2
warmup: [{ rows: 1 }, { rows: 4 }] # as it comes
`;

describe('a change in model.yaml', () => {
  it('replaces the values and leaves comments, order and spacing alone', () => {
    expect(editConfig(YAML, { max_batch_size: 16, instances: 1 })).toBe(
      YAML.replace('  4 #', '  16 #').replace('instances: 2', 'instances: 1'),
    );
  });

  it('adds what is not there at the end', () => {
    expect(editConfig(YAML, { intra_op_threads: 2 })).toBe(`${YAML}intra_op_threads: 2\n`);
  });

  it('refuses what is no mapping, or no plain value', () => {
    expect(() => editConfig('- a\n', { instances: 1 })).toThrow('not a mapping');
    expect(() => editConfig(YAML, { warmup: 1 })).toThrow('warmup in model.yaml is not a plain value');
  });
});
