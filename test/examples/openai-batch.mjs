// Scores a file with the official OpenAI client: upload, batch, poll, fetch.
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI, { toFile } from 'openai';

const client = new OpenAI({
  baseURL: `${process.env.REMUDA_URL ?? 'http://localhost:8080'}/v1`,
  apiKey: process.env.REMUDA_API_KEY ?? 'none',
});

const rows = [-40, 20, 100].map((celsius, i) => ({
  custom_id: `row-${i}`,
  method: 'POST',
  url: '/v1/inference-requests',
  body: { model: 'celsius', inputs: { celsius: [celsius] } },
}));
const lines = rows.map((row) => JSON.stringify(row)).join('\n');

const file = await client.files.create({
  purpose: 'batch',
  file: await toFile(Buffer.from(lines), 'temperatures.jsonl'),
});
let batch = await client.batches.create({
  input_file_id: file.id,
  endpoint: '/v1/inference-requests',
  completion_window: '24h',
});
while (!['completed', 'failed', 'expired', 'cancelled'].includes(batch.status)) {
  await sleep(200);
  batch = await client.batches.retrieve(batch.id);
}
console.log(batch.status, JSON.stringify(batch.request_counts));
const answers = await client.files.content(batch.output_file_id);
console.log(await answers.text());
