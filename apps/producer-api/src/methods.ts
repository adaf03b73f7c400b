/** Tells a path that is no route (404) from a route that is asked with a method it does not have (405, with Allow). */
import { RemudaError } from '@remuda/core/errors';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { MethodNotAllowedError } from './errors.js';

export interface RouteMethods {
  /** The error of a call that no route took. */
  notFound(request: FastifyRequest): Error;
}

/** Collects the routes as they are added; call it before. */
export function methodsOfRoutes(app: FastifyInstance): RouteMethods {
  const routes = new Map<string, { pattern: RegExp; methods: Set<string> }>();
  app.addHook('onRoute', ({ url, method }) => {
    const route = routes.get(url) ?? { pattern: patternOf(url), methods: new Set<string>() };
    for (const name of [method].flat()) route.methods.add(name);
    routes.set(url, route);
  });
  return {
    notFound({ method, url }) {
      const path = url.split('?', 1)[0] as string;
      const allowed = [...routes.values()].filter(({ pattern }) => pattern.test(path));
      const names = new Set(allowed.flatMap(({ methods }) => [...methods]));
      if (names.size === 0 || names.has(method)) {
        return new RemudaError('route_not_found', `there is no ${method} ${path}; see /openapi.json`);
      }
      return new MethodNotAllowedError(method, [...names].join(', '));
    },
  };
}

/** /v1/requests/:id, /v1/requests::batch, /v1/a/:b(^\\w+)::c, /docs/* as regular expressions. */
function patternOf(url: string): RegExp {
  const plain = url.replace(/(:\w+)\(\^[^)]*\)/g, '$1');
  const escaped = plain.replace(/[.+?^${}()|[\]\\]/g, '\\$&');
  const source = escaped.replace(/::|:\w+|\*/g, (token) =>
    token === '::' ? ':' : token === '*' ? '.*' : '[^/:]+',
  );
  return new RegExp(`^${source}$`);
}
