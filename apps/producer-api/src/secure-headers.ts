/**
 * Header fields that keep browsers from doing more with an answer than it is meant for. The API gives data, so nothing of
 * it may be run, framed or read by other sites; the pages of /docs replace the policy by their own.
 */
import helmet from '@fastify/helmet';
import type { FastifyInstance } from 'fastify';

const HALF_A_YEAR_S = 15_552_000;

export function secureHeaders(app: FastifyInstance, { tls }: { tls: boolean }): void {
  app.register(helmet, {
    contentSecurityPolicy: {
      useDefaults: false,
      directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
    },
    // Over plain HTTP browsers take no notice of it.
    strictTransportSecurity: tls ? { maxAge: HALF_A_YEAR_S } : false,
    referrerPolicy: { policy: 'no-referrer' },
    xFrameOptions: { action: 'deny' },
    // For pages of old browsers: each call would pay for them.
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xPermittedCrossDomainPolicies: false,
    originAgentCluster: false,
    xXssProtection: false,
  });
}
