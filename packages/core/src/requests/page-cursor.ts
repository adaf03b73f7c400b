/**
 * Cursors of lists that go from the newest to the oldest: the place of the last entry that was looked at. Who does not
 * see the entries of all tenants gets it sealed, since that entry may be somebody else's (access/cursor-sealer.ts).
 */
import { InvalidInputError } from '@remuda/schemas';
import type { Sight } from '../access/caller.js';
import type { CursorSealer } from '../access/cursor-sealer.js';
import type { Place } from '../store/newest-first.js';
import type { StoreGuard } from './store-guard.js';

export interface CursorDeps {
  sealer: Pick<CursorSealer, 'seal' | 'open'>;
  guard: StoreGuard;
}

/** As it is given out; null at the end of the list. */
export async function giveCursor(
  place: Place | null,
  sight: Sight,
  { sealer, guard }: CursorDeps,
): Promise<string | null> {
  if (place === null) return null;
  const plain = Buffer.from(`${place.at}:${place.id}`).toString('base64url');
  return sight === null ? plain : guard.run(() => sealer.seal(plain, sight));
}

/** @throws InvalidInputError invalid_request where it is none, or one of somebody else's */
export async function takeCursor(
  cursor: string | undefined,
  sight: Sight,
  { sealer, guard }: CursorDeps,
): Promise<Place | undefined> {
  if (cursor === undefined) return undefined;
  const plain = sight === null ? cursor : await guard.run(() => sealer.open(cursor, sight));
  const text = plain === null ? '' : Buffer.from(plain, 'base64url').toString('latin1');
  const match = /^(\d{1,15}):([A-Za-z0-9_-]{1,128})$/.exec(text);
  if (!match) throw badCursor();
  return { at: Number(match[1]), id: match[2] as string };
}

function badCursor(): InvalidInputError {
  const finding = { path: 'query.cursor', expected: 'one that this server gave', received: 'another' };
  return new InvalidInputError([finding], 'invalid_request');
}
