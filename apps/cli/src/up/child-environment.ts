/** The environment of a child: that of `remuda up`, with what must differ between several workers on one machine. */

export function apiEnvironment(env: NodeJS.ProcessEnv, port: number | undefined): NodeJS.ProcessEnv {
  return port === undefined ? env : { ...env, REMUDA_API_PORT: String(port) };
}

/** An id or a port that was set is for the first worker; the others get one after it. */
export function workerEnvironment(env: NodeJS.ProcessEnv, number: number, count: number): NodeJS.ProcessEnv {
  const { REMUDA_WORKER_ID: id, REMUDA_WORKER_PORT: port } = env;
  if (count === 1) return env;
  return {
    ...env,
    ...(id ? { REMUDA_WORKER_ID: `${id}-${number}` } : {}),
    ...(Number(port) > 0 ? { REMUDA_WORKER_PORT: String(Number(port) + number - 1) } : {}),
  };
}
