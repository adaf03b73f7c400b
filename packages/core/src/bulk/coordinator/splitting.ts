/**
 * How rows that fail together are parted until the guilty one stands alone: at a whole batch while there is more than
 * one, since a row should run in the same company as ever; then in half.
 */
interface Rows {
  firstRow: number;
  rows: number;
}

/** Two of them, or the row itself where there is but one. */
export function halves<R extends Rows>({ firstRow, rows }: R, batchRows: number): Rows[] {
  if (rows < 2) return [{ firstRow, rows }];
  const half = Math.ceil(rows / 2);
  const first = rows > batchRows ? Math.ceil(half / batchRows) * batchRows : half;
  // One batch and a few rows: the batch goes first.
  const cut = first >= rows ? batchRows : first;
  return [
    { firstRow, rows: cut },
    { firstRow: firstRow + cut, rows: rows - cut },
  ];
}
