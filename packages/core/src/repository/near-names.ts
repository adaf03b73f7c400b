/** Names that someone may have meant: for "did you mean …" after a name that is not there. */

const MOST_SUGGESTIONS = 3;

/** At most three of `names`, nearest first: few letters apart, or one the beginning of the other. */
export function nearNames(name: string, names: Iterable<string>): string[] {
  const wanted = name.toLowerCase();
  const mostEdits = Math.max(1, Math.floor(wanted.length / 3));
  return [...names]
    .map((candidate) => ({ candidate, distance: distanceTo(wanted, candidate.toLowerCase()) }))
    .filter(({ distance }) => distance <= mostEdits)
    .sort((a, b) => a.distance - b.distance || a.candidate.localeCompare(b.candidate))
    .slice(0, MOST_SUGGESTIONS)
    .map(({ candidate }) => candidate);
}

/** The edits between two names; 1 where one begins with the other, since endings are what people leave out. */
function distanceTo(wanted: string, candidate: string): number {
  const [short, long] = wanted.length < candidate.length ? [wanted, candidate] : [candidate, wanted];
  if (short.length >= 3 && short !== long && long.startsWith(short)) return 1;
  return editDistance(wanted, candidate);
}

/** Levenshtein distance: letters to add, take away or change. One row of the table at a time. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
