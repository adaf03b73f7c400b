/** For those who watch: /livez says that the process answers, /readyz that it can take requests, /metrics the figures. */
import { Health } from '@remuda/schemas';
import * as z from 'zod';
import type { App, ServerDeps } from '../deps.js';
import { json } from '../openapi.js';

/** Load balancers and Kubernetes ask without a key. */
const PUBLIC = { scope: 'public' } as const;

export function healthRoutes(app: App, deps: ServerDeps): void {
  const live = {
    tags: ['server'],
    summary: 'Whether the process answers',
    response: { 200: json('It does.', Health) },
  };
  app.get('/livez', { schema: live, config: PUBLIC }, (_request, reply) => {
    return reply.send({ status: 'ok', checks: {} } satisfies Health);
  });

  const ready = {
    tags: ['server'],
    summary: 'Whether requests can be taken',
    response: { 200: json('They can.', Health), 503: json('Draining, or Redis does not answer.', Health) },
  };
  app.get('/readyz', { schema: ready, config: PUBLIC }, async (_request, reply) => {
    const health = await readiness(deps);
    return reply.code(health.status === 'ok' ? 200 : 503).send(health);
  });

  const metrics = {
    tags: ['server'],
    summary: 'Metrics for Prometheus',
    response: { 200: { description: 'Text format.', content: { 'text/plain': { schema: z.string() } } } },
  };
  app.get('/metrics', { schema: metrics, config: { scope: 'read' } }, async (_request, reply) => {
    return reply.type(deps.metrics.contentType).send(await deps.metrics.text());
  });
}

async function readiness({ drain, ping }: ServerDeps): Promise<Health> {
  const redis = await ping().then(
    () => ({ ok: true, detail: 'answers' }),
    (error: unknown) => ({ ok: false, detail: error instanceof Error ? error.message : String(error) }),
  );
  const status = drain.draining ? 'draining' : redis.ok ? 'ok' : 'unhealthy';
  return { status, checks: { redis } };
}
