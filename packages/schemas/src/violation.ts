/**
 * Invalid input as people should see it: where, what was expected, what came. One error class that the codec throws
 * and one function that turns zod's issues into the same list; the HTTP edge maps both to a Problem.
 */
import type * as z from 'zod';
import type { ErrorCode, Violation } from './errors.js';

type Path = readonly PropertyKey[];

/** Findings about an input. `code` is the catalogue code that the whole call ends with. */
export class InvalidInputError extends Error {
  override readonly name = 'InvalidInputError';
  constructor(
    readonly violations: readonly Violation[],
    readonly code: ErrorCode = 'invalid_input',
  ) {
    super(
      violations.map((v) => `${v.path || 'body'}: expected ${v.expected}, received ${v.received}`).join('; '),
    );
  }
}

/** Throws an InvalidInputError with one finding. */
export function refuse(path: Path, expected: string, received: string, code?: ErrorCode): never {
  throw new InvalidInputError([{ path: dotted(path), expected, received }], code);
}

/** inputs.x.data[3][2]: names joined by dots, positions in brackets. */
export function dotted(path: Path): string {
  let out = '';
  for (const key of path) {
    if (typeof key === 'number') out += `[${key}]`;
    else out += out === '' ? String(key) : `.${String(key)}`;
  }
  return out;
}

/** A short description of a value: its kind, and itself when it is short. */
export function describeValue(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'string') {
    return value.length > 40 ? `a string of ${value.length} characters` : JSON.stringify(value);
  }
  return `${typeof value} ${String(value)}`;
}

/** Most findings that an answer lists; the rest is counted in the last one. */
const MAX_VIOLATIONS = 20;

/** zod's issues as findings, in order, at most twenty. `body` is the value that was parsed. */
export function violationsOf(error: z.ZodError, body: unknown, prefix: Path = []): Violation[] {
  const found = error.issues.flatMap((issue) => fromIssue(issue, body, prefix));
  if (found.length <= MAX_VIOLATIONS) return found;
  const rest = found.length - MAX_VIOLATIONS;
  return [
    ...found.slice(0, MAX_VIOLATIONS),
    { path: dotted(prefix), expected: 'fewer faults', received: `${rest} more findings like these` },
  ];
}

function fromIssue(issue: z.core.$ZodIssue, body: unknown, prefix: Path): Violation[] {
  const path = dotted([...prefix, ...issue.path]);
  const value = valueAt(body, issue.path);
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => ({
        path: dotted([...prefix, ...issue.path, key]),
        expected: 'no such key',
        received: `an unknown key "${key}"`,
      }));
    case 'invalid_union':
      return fromUnion(issue, body, prefix);
    case 'invalid_key': {
      const key = issue.path.at(-1);
      const expected = issue.issues.map((inner) => expectation(inner)).join(', ');
      return [{ path, expected: `a key of ${expected}`, received: describeValue(key) }];
    }
    case 'too_big':
    case 'too_small':
      return [{ path, expected: expectation(issue), received: sizeOf(value, issue.origin) }];
    default:
      return [{ path, expected: expectation(issue), received: describeValue(value) }];
  }
}

/** The faults of the branch that was meant, the one with the fewest; where none fits, the kinds of value that would. */
function fromUnion(issue: z.core.$ZodIssueInvalidUnion, body: unknown, prefix: Path): Violation[] {
  const value = valueAt(body, issue.path);
  const [meant] = issue.errors
    .filter((branch) => !branch.some(isOtherKind))
    .sort((a, b) => a.length - b.length);
  if (meant) {
    return meant.flatMap((inner) =>
      fromIssue({ ...inner, path: [...issue.path, ...inner.path] }, body, prefix),
    );
  }
  const kinds = new Set(issue.errors.flatMap((branch) => branch.filter(isOtherKind).map(expectation)));
  const expected = [...kinds].join(' or ') || issue.message;
  return [{ path: dotted([...prefix, ...issue.path]), expected, received: describeValue(value) }];
}

/** True when a branch was refused at its root: another kind of value altogether. */
function isOtherKind(issue: z.core.$ZodIssue): boolean {
  return issue.path.length === 0 && issue.code === 'invalid_type';
}

/** What would have been right, in words. */
function expectation(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return KINDS[issue.expected] ?? issue.expected;
    case 'invalid_value':
      return `one of ${issue.values.map((value) => JSON.stringify(value)).join(', ')}`;
    case 'invalid_format':
      // A regular expression comes with a sentence of its own; the built-in formats speak for themselves.
      return issue.format === 'regex' ? issue.message : `a valid ${issue.format}`;
    case 'too_big':
      return `at most ${issue.maximum}${unitOf(issue.origin)}`;
    case 'too_small':
      return `${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}${unitOf(issue.origin)}`;
    default:
      return issue.message;
  }
}

const KINDS: Readonly<Partial<Record<string, string>>> = {
  int: 'a whole number',
  number: 'a number',
  string: 'a string',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'an array',
};

function unitOf(origin: string): string {
  if (origin === 'string') return ' characters';
  return origin === 'array' ? ' entries' : '';
}

function sizeOf(value: unknown, origin: string): string {
  if (origin === 'string' && typeof value === 'string') return `${value.length} characters`;
  return describeValue(value);
}

function valueAt(body: unknown, path: Path): unknown {
  let value: unknown = body;
  for (const key of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}
