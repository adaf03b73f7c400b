/**
 * Errors of the routes that speak the OpenAI API. Its clients read `error` of the body and nothing else: without it all
 * that they say is "404 status code (no body)". So these problems have it beside what every problem has. They also try
 * 409 and every 5xx again by themselves, whether that can help or not, unless they are told.
 */
import type { OpenAiError, Problem } from '@remuda/schemas';
import type { FastifyReply, FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Its errors are read by clients of the OpenAI API. */
    openAi?: boolean;
  }
}

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
};

/** Adds to a problem, and to the answer that it goes out with, what those clients look for. */
export function forOpenAi(problem: Problem, request: FastifyRequest, reply: FastifyReply): Problem {
  if (!request.routeOptions?.config?.openAi) return problem;
  reply.header('x-should-retry', String(problem.retryable));
  return { ...problem, error: openAiError(problem) };
}

function openAiError({ status, code, detail, errors }: Problem): OpenAiError {
  const type = TYPES[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error');
  return { message: detail, type, code, param: errors?.[0]?.path || null };
}
