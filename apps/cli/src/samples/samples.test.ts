import { describe, expect, it } from 'vitest';
import { recordingTerminal } from '../terminal/recording-terminal.fixture.js';
import { displayWidth } from '../terminal/table.js';
import { samplesFolder } from '../workspace.js';
import { reportLines } from './report-text.js';
import { type SampleAnswer, sampleAnswer } from './sample-answer.js';
import { readSampleSet } from './sample-set.js';
import type { SampleReport } from './send-samples.js';
import { windowsOf } from './speech-clips.js';

describe('the bundled samples', () => {
  it('are all there, with at least 24 text lines in both directions', async () => {
    const { textLines, speech } = await readSampleSet(samplesFolder);
    expect(textLines.length).toBeGreaterThanOrEqual(24);
    expect(new Set(textLines.map((line) => line.direction))).toEqual(new Set(['0', '180']));
    expect(new Set(speech.map((clip) => clip.speech))).toEqual(new Set([true, false]));
  });
});

describe('the windows of a clip', () => {
  it('have 512 new samples behind the last 64 of the window before, and leave a rest out', () => {
    const wav = Buffer.alloc(44 + 2 * (2 * 512 + 100));
    for (let at = 0; at < 2 * 512 + 100; at++) wav.writeInt16LE(at + 1, 44 + 2 * at);
    const [first, second, ...others] = [...windowsOf(wav)];
    expect(others).toEqual([]);
    expect(first).toHaveLength(576);
    expect([...(first ?? [])].slice(0, 66)).toEqual([...Array(64).fill(0), 1 / 32_768, 2 / 32_768]);
    expect((second?.[0] ?? 0) * 32_768).toBe(449);
    expect((second?.[64] ?? 0) * 32_768).toBe(513);
    expect((second?.[575] ?? 0) * 32_768).toBe(1024);
  });
});

describe('the report', () => {
  const metrics = {
    run_ms: 2,
    total_ms: 12.25,
    batch_rows: 4,
    batch_id: 'b',
    worker_id: 'w',
    device: 'cpu',
    provider: 'cpu',
  };
  const results = [1, 3].map((queue_ms) => ({ metrics: { ...metrics, queue_ms } })) as never;

  function report(samples: SampleAnswer[], wrong: number): SampleReport {
    const summary = {
      right: samples.length - wrong,
      wrong,
      rows: 3,
      elapsed_ms: 1_500,
      rows_per_s: 2,
      first_answer_ms: 2_345,
    };
    return { samples, summary };
  }

  const line = sampleAnswer({
    sample: '07-batch-of-thirty-two-rows',
    model: 'text-recognition',
    expected: 'batch of thirty two rows',
    answer: 'batch of thirty two rows',
    score: 0.996,
    results: [{ metrics: { ...metrics, queue_ms: 1_234 } }] as never,
  });
  const clip = sampleAnswer({
    sample: 'hello',
    model: 'speech-detector',
    expected: 'speech',
    answer: 'speech',
    score: 1,
    results,
  });
  const lost = sampleAnswer({
    sample: 'tone',
    model: 'speech-detector',
    expected: 'no speech',
    answer: 'no answer',
    score: null,
    results: [],
  });

  it('is a table within 110 columns, with the means of a clip and a line that sums up', () => {
    const lines = reportLines(report([line, clip], 0), recordingTerminal());
    expect(Math.max(...lines.slice(0, 4).map(displayWidth))).toBeLessThanOrEqual(110);
    expect(lines.map((text) => text.replace(/ {2,}/g, '  '))).toEqual([
      '',
      'sample  model  answer  score  batch  queue ms  run ms  total ms',
      '07-batch-of-thirty-tw…  text-recognition  batch of thirty two r…  1.00  4  1,234  2.0  12.3  ok',
      'hello  speech-detector  speech, 2 windows  1.00  4.0  2.0  2.0  12.3  ok',
      'A clip is one request for each 32 ms window: highest score, mean of the other figures; slowest window 12.3 ms.',
      '',
      '2 right, 0 wrong; 3 rows in 1.5 s, 2 rows/s; first answer 2.3 s after the start',
    ]);
  });

  it('names each sample that is wrong, with what was expected', () => {
    const lines = reportLines(report([lost], 1), recordingTerminal());
    expect(lines.at(-1)).toBe('tone (speech-detector): expected no speech, received no answer');
    expect(lines[2]).toMatch(/WRONG$/);
  });
});
