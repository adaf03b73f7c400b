/**
 * One step that takes a while: a line that counts on a terminal, one line at its end everywhere. Looks like the steps
 * of the set-up (infra/setup/step.mjs), which `npm start` prints just before.
 */
import { Interrupted } from '../cli-error.js';
import { seconds } from './figures.js';
import type { Terminal } from './terminal.js';

const REDRAW_MS = 100;

/** Runs `work`, which may say what it waits for; what it throws is passed on. */
export async function withProgress<T>(
  terminal: Terminal,
  title: string,
  work: (say: (detail: string) => void) => Promise<T>,
): Promise<T> {
  const begun = performance.now();
  const elapsed = () => seconds(performance.now() - begun);
  const { green, red, yellow, dim } = terminal.noteColours;
  let detail = '';
  const draw = () => terminal.status?.(`  … ${title}${detail && `: ${detail}`}  ${elapsed()}`);
  const timer = terminal.status && setInterval(draw, REDRAW_MS);
  draw();
  const end = (mark: string) => {
    clearInterval(timer);
    terminal.status?.('');
    terminal.note(`${mark}${title}  ${dim(elapsed())}`);
  };
  try {
    const result = await work((text) => {
      detail = text;
    });
    end(green('ok    '));
    return result;
  } catch (error) {
    end(error instanceof Interrupted ? yellow('interrupted  ') : red('FAIL  '));
    throw error;
  }
}
