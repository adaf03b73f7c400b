/** A Problem of the API as lines for a person: code and detail, each path, near names, whether to try again. */
import type { ItemError, Problem } from '@remuda/schemas';

export function problemText(problem: Problem): string {
  const { code, status, title, detail, errors = [], suggestions = [], retryable, trace_id } = problem;
  // The detail of an invalid request is its first findings, which the lines below say in full.
  const sentence = errors.length > 0 ? title : detail || title;
  return [
    `${code} (${status}): ${sentence}`,
    ...errors.map(
      ({ path, expected, received }) => `  ${path || 'body'}: expected ${expected}, received ${received}`,
    ),
    ...(suggestions.length > 0 && !sentence.includes('did you mean')
      ? [`  did you mean ${suggestions.join(' or ')}?`]
      : []),
    ...(code === 'unauthorized' ? ['  give a key with REMUDA_API_KEY, or --key @FILE'] : []),
    ...(retryable ? ['  the same call may succeed later'] : []),
    ...(trace_id ? [`  trace ${trace_id}`] : []),
  ].join('\n');
}

/** The error of an item or of a whole request. */
export function itemErrorText({ code, message, retryable }: ItemError): string {
  return `${code}: ${message}${retryable ? ' (may succeed later)' : ''}`;
}
