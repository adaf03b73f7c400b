/** Reads figures from the Prometheus text of a process. */
import { request } from 'undici';

/** The sum over all series of a metric at `url`/metrics; 0 where there are none. */
export async function metricOf(url: string, name: string): Promise<number> {
  const { body } = await request(`${url}/metrics`);
  return sumOf(await body.text(), name);
}

export function sumOf(text: string, name: string): number {
  const series = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm');
  return [...text.matchAll(series)].reduce((sum, match) => sum + Number(match[1]), 0);
}

/** Rows and native runs of all workers so far. */
export async function runsOf(urls: readonly string[]): Promise<{ rows: number; runs: number }> {
  let rows = 0;
  let runs = 0;
  for (const url of urls) {
    rows += await metricOf(url, 'remuda_batch_rows_sum');
    runs += await metricOf(url, 'remuda_batch_rows_count');
  }
  return { rows, runs };
}
