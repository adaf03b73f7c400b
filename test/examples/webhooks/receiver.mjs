// Receives webhooks and believes only those that Remuda has signed. npm install standardwebhooks
import { createServer } from 'node:http';
import { Webhook } from 'standardwebhooks';

const webhook = new Webhook(process.env.WEBHOOK_SECRET);
/** Ids that were dealt with: a webhook comes at least once. Keep them where you keep what you do about them. */
const seen = new Set();

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  // The bytes as they came: what is parsed and written again has another signature.
  const body = Buffer.concat(chunks).toString('utf8');
  let event;
  try {
    event = webhook.verify(body, request.headers);
  } catch {
    return response.writeHead(401).end();
  }
  const id = request.headers['webhook-id'];
  if (!seen.has(id)) handle(event);
  seen.add(id);
  // At once: what takes long is done behind the answer. Anything but 2xx is sent again.
  response.writeHead(204).end();
  if (process.argv.includes('--once')) server.close();
});
server.listen(9009, '127.0.0.1');

function handle({ type, data: { request, result } }) {
  console.log(`${type}: ${request.request_id}`, result?.outputs ?? '');
}
