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

/** How far the runs of a chunk had got when its process died. */
export interface KilledRows {
  done: number;
  running: number;
}

/**
 * Around the batch that was running then, in whole batches: what is before it and behind it is hardly to blame. Where that
 * tells nothing, halves.
 */
export function aroundKilled<R extends Rows>(
  task: R,
  { done, running }: KilledRows,
  batchRows: number,
): Rows[] {
  const { firstRow, rows } = task;
  const from = Math.min(rows, Math.floor(done / batchRows) * batchRows);
  const to = Math.min(rows, Math.ceil((done + running) / batchRows) * batchRows);
  if (running === 0 || from >= to || (from === 0 && to === rows)) return halves(task, batchRows);
  const ends = [0, from, to, rows];
  return ends.slice(1).flatMap((end, i) => {
    const begin = ends[i] as number;
    return end > begin ? [{ firstRow: firstRow + begin, rows: end - begin }] : [];
  });
}
