/** A row of numbers as one line of block characters, from its least to its greatest. */
const BLOCKS = '▁▂▃▄▅▆▇█';

/** @param width characters; each shows the mean of its share of the values */
export function sparkline(values: readonly number[], width = 60): string {
  const columns = Math.min(width, values.length);
  const means = Array.from({ length: columns }, (_, column) => {
    const part = values.slice(
      Math.floor((column * values.length) / columns),
      Math.ceil(((column + 1) * values.length) / columns),
    );
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
  const least = Math.min(...means);
  const span = Math.max(...means) - least || 1;
  return means.map((mean) => BLOCKS[Math.round(((mean - least) / span) * (BLOCKS.length - 1))]).join('');
}
