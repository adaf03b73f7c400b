/**
 * Preloaded into a process by a mutation: the Lua scripts of the store are read from the folder CHAOS_SCRIPTS in place of
 * those of the build. Production code has no switch that turns its safety off, so the suite brings its own.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename, join } from 'node:path';

const folder = process.env.CHAOS_SCRIPTS;
const real = fs.readFileSync;

if (folder !== undefined) {
  fs.readFileSync = ((path: fs.PathOrFileDescriptor, ...rest: []) => {
    const name = String(path);
    return /\/store\/scripts\/[^/]+\.lua$/.test(name)
      ? real(join(folder, basename(name)), ...rest)
      : real(path, ...rest);
  }) as typeof fs.readFileSync;
  syncBuiltinESMExports();
}
