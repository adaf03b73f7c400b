/** What the commands of the benchmarks have in common: how they end, what they say meanwhile, numbers that they are given. */

/**
 * Runs it to its exit code; 2 where it throws. Ctrl-C ends everything: the warden kills what is left and removes the
 * folder.
 */
export async function runCommand(main: () => Promise<number>): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => process.exit(130));
  try {
    process.exitCode = await main();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 2;
  }
}

/** Says lines on stderr, each with the seconds since it was made. */
export function timedSay(): (line: string) => void {
  const begun = Date.now();
  return (line) => {
    process.stderr.write(`${((Date.now() - begun) / 1_000).toFixed(1).padStart(6)} s  ${line}\n`);
  };
}

/** @throws Error naming the flag */
export function wholeNumber(flag: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 0) return value;
  throw new Error(`${flag} is ${JSON.stringify(text)}; it must be a whole number, 0 or more`);
}
