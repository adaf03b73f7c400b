/**
 * Entry of a load generator: POSTs requests over keep-alive connections as fast as they are answered. Bodies are made
 * once, and of an answer only the head is looked at, since on few cores the client takes time from the server.
 */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeBinaryBody } from '@remuda/schemas';
import { Client, type Dispatcher } from 'undici';
import { noise } from '../raw/raw-loop.js';
import { serveTask } from '../rig/node-process.js';
import type { LoadAnswer, LoadBody, LoadJob } from './load-job.js';

const BUSY_PAUSE_MS = 50;

interface Sendable {
  body: Buffer;
  headers: Record<string, string>;
}

serveTask<LoadJob, LoadAnswer>(generate);

async function generate(job: LoadJob): Promise<LoadAnswer> {
  const bodies = await makeBodies(job.body);
  const answer: LoadAnswer = {
    ids: [],
    refused: 0,
    startedAt: Date.now(),
    endedAt: 0,
    cpuMicros: 0,
    latencies: [],
  };
  const cpu = process.cpuUsage();
  let sent = 0;
  const take = (): Sendable | undefined => (sent < job.count ? bodies[sent++ % bodies.length] : undefined);
  await Promise.all(Array.from({ length: job.connections }, () => drive(job, take, answer)));
  answer.endedAt = Date.now();
  const { user, system } = process.cpuUsage(cpu);
  answer.cpuMicros = user + system;
  return answer;
}

/** One connection, one call after the other. */
async function drive(job: LoadJob, take: () => Sendable | undefined, answer: LoadAnswer): Promise<void> {
  const client = new Client(job.url, { headersTimeout: 60_000, bodyTimeout: 60_000 });
  const path = `/v1/models/${job.model}/requests`;
  const extra = job.waitS > 0 ? { prefer: `wait=${job.waitS}` } : undefined;
  for (let next = take(); next; next = take()) {
    if (job.pauseMs > 0) await sleep(job.pauseMs);
    const begun = performance.now();
    answer.ids.push(await post(client, path, { ...next, headers: { ...next.headers, ...extra } }, answer));
    answer.latencies.push(performance.now() - begun);
  }
  await client.close();
}

/** Sends until it is accepted. @throws Error with what any other refusal said */
async function post(
  client: Client,
  path: string,
  { body, headers }: Sendable,
  answer: LoadAnswer,
): Promise<string> {
  for (;;) {
    const response = await client.request({ method: 'POST', path, headers, body });
    const { statusCode } = response;
    if (statusCode === 200 || statusCode === 202) {
      await response.body.dump();
      return idOf(response);
    }
    const text = await response.body.text();
    if (statusCode !== 429 && statusCode !== 503) throw new Error(`${path} answered ${statusCode}: ${text}`);
    answer.refused++;
    await sleep(BUSY_PAUSE_MS);
  }
}

/** Location: /v1/requests/{id} */
function idOf({ headers }: Dispatcher.ResponseData): string {
  const location = headers.location ?? headers['content-location'];
  if (typeof location !== 'string') throw new Error('an accepted request came without a Location');
  return location.slice(location.lastIndexOf('/') + 1);
}

async function makeBodies(body: LoadBody): Promise<Sendable[]> {
  if (body.kind === 'images') {
    const files = await Promise.all(body.files.map((file) => readFile(file)));
    return files.map((file) => ({ body: file, headers: { 'content-type': 'image/png' } }));
  }
  const values = noise(1, body.rowShape);
  const bytes = new Uint8Array(values.buffer);
  const frame = encodeBinaryBody('inputs', [{ name: 'x', datatype: 'FP32', shape: body.rowShape, bytes }]);
  return [
    {
      body: frame.body,
      headers: {
        'content-type': 'application/octet-stream',
        'inference-header-content-length': String(frame.headerLength),
      },
    },
  ];
}
