/**
 * Asks the workers for the signature of a version that nobody has loaded and whose files this process does not see.
 * One of those that have the files reads and publishes it (apps/worker: signature-wishes.ts).
 */
import type { Keys } from '../store/keys.js';
import type { Redis } from '../store/redis.js';
import { fieldOf } from './published-signatures.js';

/** Does not wait for it. @throws where Redis does not answer */
export async function wishForSignature(
  redis: Redis,
  keys: Keys,
  model: string,
  version: string,
): Promise<void> {
  await redis.publish(keys.signatureWanted(), fieldOf(model, version));
}
