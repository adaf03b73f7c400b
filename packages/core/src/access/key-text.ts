/**
 * The text of an API key, rmd_<id>_<secret>, and what of it is kept: a SHA-256 of the secret, never the secret.
 *
 * A fast hash is right here. Slow ones (scrypt, argon2) make it dear to try the passwords that people think of; a secret
 * of ours is 256 random bits, of which nobody tries a share worth naming however fast the hash is. It also runs for each
 * call, where a slow one would be a way to keep the server busy.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { newKeySecret } from '../ids.js';

const FORM = /^rmd_([a-z0-9]{12})_([A-Za-z0-9]{43})$/;
const HINT_LENGTH = 4;

export interface KeyText {
  id: string;
  /** SHA-256 of the secret. */
  hash: Buffer;
}

/** undefined: no text of a key. */
export function parseKeyText(text: string): KeyText | undefined {
  const [, id, secret] = FORM.exec(text) ?? [];
  return id === undefined || secret === undefined ? undefined : { id, hash: hashOf(secret) };
}

export interface NewKeyText {
  /** For the owner, shown once. */
  text: string;
  /** What is kept, base64. */
  hash: string;
  hint: string;
}

export function newKeyText(id: string): NewKeyText {
  const secret = newKeySecret();
  return {
    text: `rmd_${id}_${secret}`,
    hash: hashOf(secret).toString('base64'),
    hint: secret.slice(-HINT_LENGTH),
  };
}

/** In a time that does not depend on where they differ. */
export function sameHash(hash: Buffer, kept: Buffer): boolean {
  return hash.length === kept.length && timingSafeEqual(hash, kept);
}

function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}
