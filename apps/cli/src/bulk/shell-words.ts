/** A command as it can be pasted into a shell. */
export function shellCommand(words: readonly (string | undefined | false)[]): string {
  return words
    .filter((word) => typeof word === 'string')
    .map(quoted)
    .join(' ');
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
