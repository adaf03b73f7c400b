/**
 * Entry of the warden: lives in a group of its own until the channel to the chaos suite breaks, which an orderly end
 * does not let it see. Then it kills what the suite has left (also what stands still by SIGSTOP), takes its disk off
 * and removes its folder.
 */
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import type { WardenMessage } from './warden.js';

const groups = new Set<number>();
const mounts = new Set<string>();
let folder: string | undefined;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
process.on('message', (message: WardenMessage) => {
  if (message.group !== undefined) groups.add(message.group);
  if (message.mount !== undefined) mounts.add(message.mount);
  if (message.folder !== undefined) folder = message.folder;
});
process.once('disconnect', () => {
  for (const group of groups) kill(group);
  for (const mount of mounts) spawnSync('umount', ['-l', mount], { stdio: 'ignore' });
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  process.exit(0);
});

function kill(group: number): void {
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // Gone by itself.
  }
}
