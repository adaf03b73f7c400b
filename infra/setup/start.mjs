// `npm start`: set-up, then `remuda up` with the bundled samples and whatever arguments were given.
// The CLI runs in a process group of its own and hears of Ctrl-C from here alone, once: the terminal and npm would
// each tell it too, and a second signal means "at once" to it. The IPC channel tells it when this process dies.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';
import { exitCodeOf, stopCommands } from './run-command.mjs';

const SAME_SIGNAL_MS = 500;
let cli;
let lastSignalAt = 0;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => void onSignal(signal));

try {
  await prepare({ verbose: process.env.REMUDA_SETUP_VERBOSE === '1' });
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
cli = spawn(
  process.execPath,
  [join(root, 'apps/cli/bin/remuda.mjs'), 'up', '--samples', ...process.argv.slice(2)],
  {
    cwd: root,
    detached: true,
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  },
);
cli.once('exit', (code, signal) => process.exit(code ?? exitCodeOf(signal)));

async function onSignal(signal) {
  if (!cli) {
    await stopCommands();
    process.exit(exitCodeOf(signal));
  }
  const now = Date.now();
  if (now - lastSignalAt < SAME_SIGNAL_MS) return;
  lastSignalAt = now;
  cli.kill(signal === 'SIGHUP' ? 'SIGTERM' : signal);
}
