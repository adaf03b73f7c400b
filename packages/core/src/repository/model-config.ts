/**
 * A model.yaml as a HarnessConfig. Whatever is wrong with it is told with file, line and path, and an unknown key with
 * the key that may have been meant: this file is written by hand.
 */
import { HarnessConfig, type Violation, violationsOf } from '@remuda/schemas';
import { type Document, LineCounter, parseDocument } from 'yaml';
import * as z from 'zod';
import { nearNames } from './near-names.js';

export interface ConfigFault {
  line: number | null;
  message: string;
}

export type ParsedConfig = { config: HarnessConfig } | { invalidYaml: boolean; faults: ConfigFault[] };

/** @param text the text of a model.yaml */
export function parseModelConfig(text: string): ParsedConfig {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  if (document.errors.length > 0) {
    return { invalidYaml: true, faults: document.errors.map((error) => yamlFault(error, lines)) };
  }
  const body: unknown = document.toJS();
  const parsed = HarnessConfig.safeParse(body);
  if (parsed.success) return { config: parsed.data };
  const faults = parsed.error.issues.flatMap((issue) => {
    const alone = new z.ZodError([issue]);
    return violationsOf(alone, body).map((violation) => configFault(issue, violation, document, lines));
  });
  return { invalidYaml: false, faults };
}

function yamlFault(error: { message: string; pos: [number, number] }, lines: LineCounter): ConfigFault {
  // The first line of the message is the sentence; the rest draws the place.
  const sentence = (error.message.split('\n')[0] as string).replace(/ at line \d+, column \d+:?$/, '');
  return { line: lines.linePos(error.pos[0]).line, message: `invalid YAML: ${sentence}` };
}

function configFault(
  issue: z.core.$ZodIssue,
  { path, expected, received }: Violation,
  document: Document,
  lines: LineCounter,
): ConfigFault {
  if (issue.code !== 'unrecognized_keys') {
    const line = lineOf(issue.path, document, lines);
    return { line, message: `${path || 'the file'}: expected ${expected}, received ${received}` };
  }
  const key = issue.keys.find((name) => path === name || path.endsWith(`.${name}`)) ?? path;
  const line = lineOf([...issue.path, key], document, lines);
  return { line, message: `${path}: unknown key; ${suggestion(key, knownKeys(HarnessConfig, issue.path))}` };
}

function suggestion(key: string, known: string[]): string {
  const near = nearNames(key, known);
  if (near.length > 0) return `did you mean ${near.map((name) => `"${name}"`).join(' or ')}?`;
  return `known keys are ${known.join(', ')}`;
}

/** The line on which the entry of a path begins; of its nearest parent, where the entry itself is missing. */
function lineOf(path: readonly PropertyKey[], document: Document, lines: LineCounter): number | null {
  for (let length = path.length; length > 0; length--) {
    const node = document.getIn(path.slice(0, length), true) as { range?: [number, ...number[]] } | undefined;
    if (node?.range) return lines.linePos(node.range[0]).line;
  }
  return null;
}

/** The keys that a schema knows at a path. */
function knownKeys(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  const plain = unwrapped(schema);
  const [first, ...rest] = path;
  if (first === undefined) return plain instanceof z.ZodObject ? Object.keys(plain.shape) : [];
  if (plain instanceof z.ZodArray) return knownKeys(plain.element, rest);
  if (plain instanceof z.ZodRecord) return knownKeys(plain.valueType, rest);
  if (plain instanceof z.ZodObject && first in plain.shape)
    return knownKeys(plain.shape[first as string], rest);
  return [];
}

function unwrapped(schema: z.core.$ZodType): z.core.$ZodType {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) {
    return unwrapped(schema.unwrap());
  }
  return schema;
}
