/**
 * Runs the sessions that the pages show and compares what comes. In a block `sh session` a line that begins with `$ `
 * (and those after it that begin with `> `) is a command for bash at the root of the repository; what follows is what
 * it printed. `…` stands for anything, and whitespace does not count: answers are broken into lines to be read. What
 * differs from run to run (ids, times, durations, the last digits of floats) counts as equal.
 */
import { spawn } from 'node:child_process';
import { root } from './documents.js';

export interface Step {
  command: string;
  expected: string;
}

export function stepsOf(body: string): Step[] {
  const steps: Step[] = [];
  for (const line of body.split('\n')) {
    const last = steps.at(-1);
    if (line.startsWith('$ ')) steps.push({ command: line.slice(2), expected: '' });
    else if (!last) continue;
    else if (line.startsWith('> ') && last.expected === '') last.command += `\n${line.slice(2)}`;
    else last.expected += `${line}\n`;
  }
  return steps;
}

/** Only bounds a failing test. */
const LONGEST_MS = 120_000;

/** The pages wait for as long as people would; a machine with much other work gets more. */
function patient(command: string): string {
  return command.replace(/\b(wait[= ])\d+/g, (_, before) => `${before}60`);
}

/** What a command prints, both streams. The address of the pages is replaced by that of the fleet. */
export function run(command: string, { url, path }: { url: string; path: string }): Promise<string> {
  const { host } = new URL(url);
  return new Promise((resolve, reject) => {
    const child = spawn('bash', ['-c', patient(command).replaceAll('localhost:8080', host)], {
      cwd: root,
      timeout: LONGEST_MS,
      env: { PATH: path, HOME: root, REMUDA_URL: url, LC_ALL: 'C.UTF-8' },
    });
    let output = '';
    const add = (chunk: Buffer): void => {
      output += chunk.toString('utf8');
    };
    child.stdout.on('data', add);
    child.stderr.on('data', add);
    child.once('error', reject);
    child.once('close', (_code, signal) => {
      if (signal) reject(new Error(`${command}\nwas ended by ${signal} after: ${output}`));
      else resolve(output);
    });
  });
}

const VARIABLE: readonly (readonly [RegExp, string])[] = [
  [/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME'],
  [/\b[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}\b/g, 'TRACEPARENT'],
  [/\b[0-9a-f]{64}\b/g, 'DIGEST'],
  [/\b[0-9a-f]{32}\b/g, 'TRACE'],
  [/\b(req|bat)_[0-9a-z]+/g, '$1_ID'],
  [/"(worker_id|device_description)":\s*"[^"]*"/g, '"$1":"NAME"'],
  [/"(queue_ms|run_ms|total_ms|write_ms|pid)":\s*[\d.]+/g, '"$1":N'],
  [/(content-length: )\d+/gi, '$1N'],
  [/^(date|keep-alive|connection): .*$/gim, ''],
  [/"(removed_from_queue|stopped_before_run|ran_but_suppressed)"/g, '"OUTCOME"'],
];

function comparable(text: string): string {
  const fixed = VARIABLE.reduce((left, [pattern, by]) => left.replace(pattern, by), text);
  return fixed.replace(/\d+\.\d{3,}(?:e-\d+)?/g, (float) => Number(float).toFixed(2)).replace(/\s+/g, '');
}

/** Whether the output is what the page shows. */
export function matches(expected: string, output: string): boolean {
  const pieces = comparable(expected)
    .split('…')
    .map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${pieces.join('[\\s\\S]*')}$`).test(comparable(output));
}
