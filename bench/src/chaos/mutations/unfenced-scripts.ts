/** A copy of the store's Lua scripts without the fence: what the suite must find red. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../rig/bench-models.js';

const SCRIPTS = join(ROOT, 'packages/core/src/store/scripts');
/** Refuses the write of an attempt that was overtaken. */
const FENCE = /^ *elseif [^\n]*> token then verdict = 'fenced'\n/m;

/** @throws Error where the fence is not found: the mutation must not pass by doing nothing */
export function layUnfencedScripts(folder: string): string {
  cpSync(SCRIPTS, folder, { recursive: true });
  const file = join(folder, 'write-outcomes-N.lua');
  const text = readFileSync(file, 'utf8');
  if (!FENCE.test(text)) throw new Error(`${file} has no line that is the fence: look where it has gone`);
  writeFileSync(file, text.replace(FENCE, ''));
  return folder;
}
