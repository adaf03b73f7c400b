/**
 * Threads and child processes run the build, also when a test runner runs the code that starts them from its
 * TypeScript source: Node itself cannot load .ts files.
 */

/** URL of a built file beside the module at `from`. */
export function builtFile(file: string, from: string): URL {
  return new URL(file, from.endsWith('.ts') ? from.replace('/src/', '/dist/') : from);
}
