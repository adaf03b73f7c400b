/** A Terminal for tests: plain, 110 columns wide, and it keeps what was written. */
import pc from 'picocolors';
import type { Terminal } from './terminal.js';

export interface RecordingTerminal extends Terminal {
  answers: string[];
  notes: string[];
}

export function recordingTerminal(width = 110): RecordingTerminal {
  const answers: string[] = [];
  const notes: string[] = [];
  const plain = pc.createColors(false);
  return {
    answers,
    notes,
    out: (line) => void answers.push(line),
    note: (line) => void notes.push(line),
    status: undefined,
    colours: plain,
    noteColours: plain,
    width,
  };
}
