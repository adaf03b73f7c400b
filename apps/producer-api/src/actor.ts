/** Who makes an edit, for people who read of it later: what the caller says, beside the key that is known of it. */
import type { FastifyRequest } from 'fastify';

const LONGEST_ACTOR = 200;

/** What the caller says who it is; nobody checks that. */
export function statedActor({ headers }: Pick<FastifyRequest, 'headers'>): string | null {
  const given = headers['remuda-actor'];
  return (typeof given === 'string' && given.trim().slice(0, LONGEST_ACTOR)) || null;
}

/** "ada (key 3f0…)", or the address of who has no key and says nothing. */
export function actorOf(request: FastifyRequest): string {
  const { keyId } = request.caller;
  const stated = statedActor(request) ?? request.ip;
  return keyId === null ? stated : `${stated} (key ${keyId})`;
}
