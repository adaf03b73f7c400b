/**
 * The coordinator as a process of its own: encoding and joining millions of rows must not hold up a worker's locks. It
 * lives as long as its parent does, and its parent says when it is to leave. The entry with the real parts is
 * coordinator-entry.ts.
 */
import { constants, setPriority } from 'node:os';
import { Coordinator, type CoordinatorDeps } from './coordinator.js';
import type { CoordinatorInit, FromCoordinator, ToCoordinator } from './coordinator-messages.js';

export interface CoordinatorParts {
  deps: Omit<CoordinatorDeps, 'jobId' | 'report' | 'onDeaf'>;
  close(): Promise<void>;
}

/** @param open makes the parts that the init message speaks of @param leave aborted when the process is to leave */
export function serveCoordinator(
  open: (init: CoordinatorInit, leave: AbortSignal) => Promise<CoordinatorParts>,
): void {
  process.title = 'remuda-coordinator';
  // Whoever waits for an answer goes before a file: on a machine that is busy this process gets what is left.
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  // Ctrl-C reaches the whole process group; when to stop is for the parent to say.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {});
  // SIGKILL, since a job must not be coordinated by one whose parent has lost it.
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
  const leaving = new AbortController();
  process.on('message', (message: ToCoordinator) => {
    if (message.type === 'leave') leaving.abort();
    else
      run(message.init, open, leaving.signal).catch((error: unknown) => {
        const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
        send({ type: 'failed', message: text }, () => process.kill(process.pid, 'SIGKILL'));
      });
  });
}

async function run(
  init: CoordinatorInit,
  open: (init: CoordinatorInit, leave: AbortSignal) => Promise<CoordinatorParts>,
  leave: AbortSignal,
): Promise<void> {
  const { deps, close } = await open(init, leave);
  const report: CoordinatorDeps['report'] = (counts) => send({ type: 'counts', counts });
  const onDeaf = (): void => void process.kill(process.pid, 'SIGKILL');
  const coordinator = new Coordinator({ ...deps, jobId: init.jobId, report, onDeaf });
  leave.addEventListener('abort', () => coordinator.leave());
  if (leave.aborted) coordinator.leave();
  const end = await coordinator.run();
  await close();
  // Messages leave in order: once this one is out, so are those before it.
  send({ type: 'done', end }, () => process.disconnect());
}

function send(message: FromCoordinator, then: () => void = () => {}): void {
  if (process.connected) process.send?.(message, undefined, undefined, then);
}
