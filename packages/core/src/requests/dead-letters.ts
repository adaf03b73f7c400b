/**
 * What was given up, looked at and dealt with: list, inspect, run again (on another version, too), discard. A redrive
 * is a new request, since a terminal state never changes: its id follows from the letter's, so doing it twice makes one
 * request, and the letter goes only when that is accepted.
 */
import { createHash } from 'node:crypto';
import {
  type DeadLetter,
  type DeadLetterChoice,
  type DeadLetterPage,
  decodeFrame,
  type ErrorClass,
  type RedriveAnswer,
} from '@remuda/schemas';
import { RemudaError, toItemError } from '../errors.js';
import type { ModelResolver } from '../models/model-resolver.js';
import { DEFAULT_LETTER_LIMITS, type Keys } from '../store/keys.js';
import type { LetterStore, StoredLetter } from '../store/letter-store.js';
import type { Place } from '../store/newest-first.js';
import { type CursorDeps, giveCursor, takeCursor } from './page-cursor.js';
import { presentLetter } from './present-letter.js';
import type { Submission } from './submission.js';
import { type GivenItem, validateItems } from './validate-inputs.js';

export interface LetterFilter {
  model?: string;
  class?: ErrorClass;
  limit: number;
  cursor?: string;
  /** null: of all tenants. */
  tenant: string | null;
}

export interface DeadLetterDeps extends CursorDeps {
  letters: LetterStore;
  keys: Keys;
  resolver: Pick<ModelResolver, 'resolve'>;
  submit(submission: Submission): Promise<unknown>;
}

/** Letters that one call looks at: a filter that fits few gives a short page with a cursor. */
const SCAN_BOUND = 1_000;
const SCAN_STEP = 100;

/** What was found, and how far it was looked; null: to the end. */
interface Scanned {
  found: DeadLetter[];
  place: Place | null;
}

export class DeadLetters {
  readonly #deps: DeadLetterDeps;

  constructor(deps: DeadLetterDeps) {
    this.#deps = deps;
  }

  async list(filter: LetterFilter): Promise<DeadLetterPage> {
    const { letters, guard } = this.#deps;
    const { tenant, cursor } = filter;
    const start = await takeCursor(cursor, tenant, this.#deps);
    const { found, place } = await this.#scan(filter, start ?? null);
    // How many others have is nobody's business who does not see them.
    const total = tenant === null ? (await guard.run(() => letters.totals())).letters : null;
    return { dead_letters: found, next_cursor: await giveCursor(place, tenant, this.#deps), total };
  }

  async #scan({ limit, ...filter }: LetterFilter, start: Place | null): Promise<Scanned> {
    const { letters, guard } = this.#deps;
    const found: DeadLetter[] = [];
    let place = start;
    let more = true;
    for (let seen = 0; seen < SCAN_BOUND && found.length < limit && more; seen += SCAN_STEP) {
      const page = await guard.run(() => letters.list(place, SCAN_STEP));
      more = page.length === SCAN_STEP;
      for (const entry of page) {
        if (found.length === limit) {
          more = true;
          break;
        }
        place = entry;
        const letter = await this.#present(entry.id);
        if (letter && fits(letter, filter)) found.push(letter);
      }
    }
    return { found, place: more ? place : null };
  }

  async #present(requestId: string): Promise<DeadLetter | null> {
    const { letters, guard, keys } = this.#deps;
    const letter = await guard.run(() => letters.read(requestId));
    return letter && presentLetter(letter, (keys.space.letters ?? DEFAULT_LETTER_LIMITS).keptMs);
  }

  /** @param tenant null: of all tenants. @throws RemudaError dead_letter_not_found */
  async get(requestId: string, tenant: string | null): Promise<DeadLetter> {
    const letter = await this.#present(requestId);
    if (letter && (tenant === null || letter.tenant === tenant)) return letter;
    throw notFound(requestId);
  }

  /**
   * Runs the items that were given up again, as a new request.
   * @param version version or alias; default what the model serves now
   * @throws RemudaError dead_letter_not_found, payload_missing, and all that a submit throws; then the letter stays
   */
  async redrive(
    requestId: string,
    tenant: string | null,
    version?: string,
  ): Promise<{ redriven_as: string }> {
    const { letters, guard, submit } = this.#deps;
    await this.get(requestId, tenant);
    const letter = await guard.run(() => letters.read(requestId));
    if (!letter) throw notFound(requestId);
    const submission = await this.#submissionOf(letter, version);
    const as = submission.options.request_id as string;
    if (!(await guard.run(() => letters.noteRedrive(letter, as)))) throw notFound(requestId);
    await submit(submission);
    await guard.run(() => letters.redriven(letter));
    return { redriven_as: as };
  }

  async #submissionOf(letter: StoredLetter, version: string | undefined): Promise<Submission> {
    const { guard, letters, resolver } = this.#deps;
    const { document, requestId, errors } = letter;
    const frames = await guard.run(() => letters.inputs(letter));
    const target = await resolver.resolve({ model: document.model, version });
    const given = errors.map(({ item }, i): GivenItem => {
      const frame = frames[i];
      if (!frame)
        throw new RemudaError(
          'payload_missing',
          `the input of item ${item} of ${requestId} is no longer stored`,
        );
      const path = document.hasItems ? ['items', i, 'inputs'] : ['inputs'];
      const inputs = decodeFrame(frame).tensors.map(({ name, ...tensor }) => {
        return { name, path: [...path, name], tensor: { name, ...tensor } };
      });
      return { id: document.itemIds?.[item] ?? null, inputs, path };
    });
    const { start_by: _start, finish_by: _finish, ...metadata } = document.metadata;
    return {
      model: document.model,
      target,
      // Points in time have passed; time-outs count from now.
      options: {
        ...{ request_id: redriveIdOf(letter), metadata, parameters: document.parameters, version },
        // Whoever asked to be told of the end is told of this one too.
        webhook: document.webhook,
      },
      items: validateItems(given, target.signature),
      hasItems: document.hasItems,
      lane: document.route.lane,
      tenant: document.tenant,
      keyId: document.keyId ?? null,
      traceId: document.traceId,
    };
  }

  /** Each letter by itself. */
  async redriveMany(
    choice: DeadLetterChoice,
    tenant: string | null,
    version?: string,
  ): Promise<RedriveAnswer> {
    const answer: RedriveAnswer = { redriven: [], refused: [] };
    const missing = (id: string): void => {
      const { code, message: reason } = notFound(id);
      answer.refused.push({ request_id: id, code, reason });
    };
    for (const id of await this.#chosen(choice, tenant, missing)) {
      try {
        answer.redriven.push({ request_id: id, ...(await this.redrive(id, tenant, version)) });
      } catch (error) {
        const { code, message: reason } = toItemError(error);
        answer.refused.push({ request_id: id, code, reason });
        // What is wrong with the store, or a queue that is full, is wrong for the rest too.
        if (error instanceof RemudaError && STOPS.has(error.code)) break;
      }
    }
    return answer;
  }

  /** Takes one letter away. @throws RemudaError dead_letter_not_found */
  async discard(requestId: string, tenant: string | null): Promise<void> {
    await this.get(requestId, tenant);
    await this.#deps.guard.run(() => this.#deps.letters.drop([requestId]));
  }

  async discardMany(choice: DeadLetterChoice, tenant: string | null): Promise<number> {
    const ids = await this.#chosen(choice, tenant);
    return this.#deps.guard.run(() => this.#deps.letters.drop(ids));
  }

  /** Oldest first, so that what is left after a full queue is the newest. */
  async #chosen(
    choice: DeadLetterChoice,
    tenant: string | null,
    missing: (id: string) => void = () => {},
  ): Promise<string[]> {
    const { ids, model, class: errorClass, limit } = choice;
    const wanted = { ...(model && { model }), ...(errorClass && { class: errorClass }), tenant };
    const found: string[] = [];
    if (ids) {
      for (const id of new Set(ids.slice(0, limit))) {
        const letter = await this.#present(id);
        // One that is asked for by its name and is not there is told of, not passed over.
        if (!letter || (tenant !== null && letter.tenant !== tenant)) missing(id);
        else if (fits(letter, wanted)) found.push(id);
      }
      return found;
    }
    let place: Place | null = null;
    do {
      const page: Scanned = await this.#scan({ ...wanted, limit: limit - found.length }, place);
      found.push(...page.found.map(({ request_id }) => request_id));
      place = page.place;
    } while (place !== null && found.length < limit);
    return found.reverse();
  }
}

const STOPS: ReadonlySet<string> = new Set([
  'store_unavailable',
  'store_full',
  'over_capacity',
  'tenant_over_quota',
  'shutting_down',
]);

/** The same letter always becomes the same request. */
export function redriveIdOf({
  requestId,
  nonce,
  diedAt,
}: Pick<StoredLetter, 'requestId' | 'nonce' | 'diedAt'>): string {
  const hash = createHash('sha256').update(`${requestId} ${nonce} ${diedAt}`).digest('hex');
  return `redrive_${hash.slice(0, 24)}`;
}

function fits(
  letter: DeadLetter,
  { model, class: errorClass, tenant }: Omit<LetterFilter, 'limit' | 'cursor'>,
): boolean {
  if (tenant !== null && letter.tenant !== tenant) return false;
  if (model !== undefined && letter.model !== model) return false;
  return errorClass === undefined || letter.items.some((item) => item.class === errorClass);
}

function notFound(requestId: string): RemudaError {
  return new RemudaError(
    'dead_letter_not_found',
    `no dead letter "${requestId}" is kept: there was none, it was redriven or discarded, or its time has passed`,
  );
}
