/**
 * How the request of a shadow run is told from all others: by its id, so that whoever has nothing else at hand knows it
 * too. A dot is in no id that a user can send.
 */
const MARK = 'shadow.';

export function shadowIdOf(requestId: string): string {
  return `${MARK}${requestId}`;
}

export function isShadowId(requestId: string): boolean {
  return requestId.startsWith(MARK);
}

/** The request that was copied. */
export function primaryIdOf(shadowId: string): string {
  return shadowId.slice(MARK.length);
}
