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
  const path = [...prefix, ...issue.path];
  const value = valueAt(body, issue.path);
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => ({
        path: dotted([...path, key]),
        expected: 'no such key',
        received: `an unknown key "${key}"`,
      }));
    case 'invalid_union': {
      const closest = closestBranch(issue.errors, value);
      if (!closest) break;
      return closest.flatMap((inner) =>
        fromIssue({ ...inner, path: [...issue.path, ...inner.path] }, body, prefix),
      );
    }
    case 'invalid_type':
      return [{ path: dotted(path), expected: issue.expected, received: describeValue(value) }];
    case 'invalid_value':
      return [
        {
          path: dotted(path),
          expected: `one of ${issue.values.map((v) => JSON.stringify(v)).join(', ')}`,
          received: describeValue(value),
        },
      ];
    case 'too_big':
    case 'too_small':
      return [{ path: dotted(path), expected: bound(issue), received: sizeOf(value, issue.origin) }];
  }
  return [{ path: dotted(path), expected: issue.message, received: describeValue(value) }];
}

/** The branch of a union that was most likely meant: the one whose faults lie deepest, an object for an object. */
function closestBranch(branches: z.core.$ZodIssue[][], value: unknown): z.core.$ZodIssue[] | undefined {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  const meant = branches.filter(
    (issues) => !issues.some((issue) => issue.path.length === 0 && issue.code === 'invalid_type'),
  );
  if (meant.length > 0) return meant[0];
  return isObject ? branches[0] : undefined;
}

function bound(issue: z.core.$ZodIssueTooBig | z.core.$ZodIssueTooSmall): string {
  const unit = issue.origin === 'string' ? ' characters' : issue.origin === 'array' ? ' entries' : '';
  return issue.code === 'too_big' ? `at most ${issue.maximum}${unit}` : `at least ${issue.minimum}${unit}`;
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
