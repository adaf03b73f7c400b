/**
 * The source of a model as it was given, a line of text or an object, as it is kept in the desired state; and in short,
 * as it is shown. What lies in Redis is checked again where it is fetched.
 */
import { InvalidInputError, ModelSourceSpec, refuse, violationsOf } from '@remuda/schemas';
import { RemudaError } from '../errors.js';
import { parseSourceUri, sourceText } from '../repository/sources/source-uri.js';

/** @throws InvalidInputError with the place in the body */
export function givenSource(given: string | Record<string, unknown>): ModelSourceSpec {
  if (typeof given === 'string') return fromText(given);
  const parsed = ModelSourceSpec.safeParse(given);
  if (parsed.success) return parsed.data;
  throw new InvalidInputError(violationsOf(parsed.error, given, ['source']), 'invalid_request');
}

/** Without what may be secret. Of what is no source (any more) the kind that it says it is. */
export function shownSource(source: Record<string, unknown>): string {
  const parsed = ModelSourceSpec.safeParse(source);
  return parsed.success ? sourceText(parsed.data) : String(source.type);
}

function fromText(text: string): ModelSourceSpec {
  try {
    return parseSourceUri(text);
  } catch (error) {
    if (!(error instanceof RemudaError)) throw error;
    return refuse(['source'], 'a source that can be read', error.message, 'invalid_request');
  }
}
