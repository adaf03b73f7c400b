// Owns how a step of the set-up looks: on a terminal one line that counts the seconds, elsewhere a line at the end.
const terminal = Boolean(process.stdout.isTTY);
const colour = terminal && !process.env.NO_COLOR;
const paint = (code, text) => (colour ? `\x1b[${code}m${text}\x1b[0m` : text);

/** Runs `work` and reports its outcome; what it throws is passed on. */
export async function step(title, work, log = console.log) {
  const begun = performance.now();
  const elapsed = () => `${((performance.now() - begun) / 1_000).toFixed(1)} s`;
  const clear = () => terminal && process.stdout.write('\r\x1b[K');
  const draw = () =>
    process.stdout.write(`\r\x1b[K  … ${title}  ${Math.round((performance.now() - begun) / 1_000)} s`);
  const timer = terminal ? setInterval(draw, 1_000) : undefined;
  if (terminal) draw();
  try {
    const result = await work();
    clear();
    log(`${paint(32, 'ok')}    ${title}  ${paint(2, elapsed())}`);
    return result;
  } catch (error) {
    clear();
    log(`${paint(31, 'FAIL')}  ${title}  ${paint(2, elapsed())}`);
    throw error;
  } finally {
    clearInterval(timer);
  }
}
