/** How a job would be cut, and how long it would take, from what its first rows have cost. */

export interface ChunkPlanFacts {
  /** null: nobody knows. */
  rows: number | null;
  /** False: estimated from the size of the file. */
  exact: boolean;
  /** Native. */
  secondsPerRow: number;
  batchRows: number;
  instances: number;
  devices: number;
  /** --chunk-rows; null: as large as is good. */
  mostRows: number | null;
}

export interface ChunkPlan {
  rows: number | null;
  rows_exact: boolean;
  chunk_rows: number;
  chunks: number | null;
  /** Chunks that are under way at once. */
  window: number;
  instances: number;
  rows_per_s: number;
  seconds: number | null;
  device_seconds: number | null;
}

/** A chunk that runs and one that is ready, of each device. */
const CHUNKS_PER_DEVICE = 2;
/** A chunk takes about this long. */
const CHUNK_S = 1;
const MOST_CHUNK_ROWS = 1_000_000;

export function chunkPlan(facts: ChunkPlanFacts): ChunkPlan {
  const { rows, exact, secondsPerRow, batchRows, mostRows } = facts;
  const instances = Math.max(1, facts.instances);
  const devices = Math.max(1, facts.devices);
  const bySpeed = (CHUNK_S * instances) / devices / secondsPerRow;
  const wished = Math.min(bySpeed, mostRows ?? Number.POSITIVE_INFINITY, MOST_CHUNK_ROWS);
  const chunkRows = Math.max(1, Math.floor(wished / batchRows)) * batchRows;
  const ratePerS = instances / secondsPerRow;
  return {
    rows,
    rows_exact: exact,
    chunk_rows: chunkRows,
    chunks: rows === null ? null : Math.ceil(rows / chunkRows),
    window: CHUNKS_PER_DEVICE * devices,
    instances,
    rows_per_s: ratePerS,
    seconds: rows === null ? null : rows / ratePerS,
    device_seconds: rows === null ? null : rows * secondsPerRow,
  };
}
