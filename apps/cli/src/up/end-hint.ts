/** What to do about an end whose log names a cause that a person can remove. */

/** @param trouble last lines of the log @returns '' where there is nothing to say */
export function endHint(name: string, trouble: readonly string[]): string {
  if (name !== 'API' || !trouble.some((line) => line.includes('EADDRINUSE'))) return '';
  return 'is another Remuda running? use --api-port 0 or REMUDA_API_PORT';
}
