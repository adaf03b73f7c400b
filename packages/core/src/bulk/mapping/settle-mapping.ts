/**
 * Which columns make which input: what the user asked for, the columns of the input and the model's signature, settled
 * once at the start of a job. Everything that cannot fit is found here, all of it at once, before a row is read.
 */
import type { ModelSignature, SignatureTensor, Violation } from '@remuda/schemas';
import { RemudaError } from '../../errors.js';
import { nearNames } from '../../repository/near-names.js';
import type { InputMapping, Mapping, ReadSettings } from '../chunk.js';
import type { ColumnInfo } from '../columns.js';
import { misfit } from './column-fit.js';
import { columnsNamed, didYouMean, listOf, textOfColumns } from './column-text.js';
import { describe, rowText, shapeOfRow } from './row-shape.js';

export interface MappingWishes {
  /** Text by input, as in {x: '[f0..f29]'}. */
  map?: Readonly<Record<string, string>>;
  /** Of the input; their types may not be known. */
  columns: readonly ColumnInfo[];
  keep?: readonly string[];
  /** Default: custom_id, where there is such a column. */
  idColumn?: string | null;
  signature: Pick<ModelSignature, 'model' | 'inputs'>;
  /** Of JSONL: requests and openai lines hold inputs by name and need no mapping. */
  lines?: ReadSettings['lines'];
  parameters?: Record<string, unknown>;
}

/** What was found for one input, for a table. */
export interface SettledInput {
  input: SignatureTensor;
  columns: ColumnInfo[];
  rowShape: number[] | null;
  problems: Violation[];
}

export interface SettledMapping {
  inputs: SettledInput[];
  keep: string[];
  idColumn: string | null;
  problems: Violation[];
}

const DEFAULT_ID = 'custom_id';
const MOST_FINDINGS = 20;

/** @throws RemudaError invalid_request; its details list each finding as `violations` */
export function settleMapping(wishes: MappingWishes): Mapping {
  const { inputs, keep, idColumn, problems } = findMapping(wishes);
  const all = [...problems, ...inputs.flatMap((input) => input.problems)];
  if (all.length > 0) throw unsettled(all);
  const settled = inputs.map(({ input, columns, rowShape }): InputMapping => {
    return { input: input.name, columns: columns.map(({ name }) => name), rowShape: rowShape as number[] };
  });
  const { parameters } = wishes;
  return { inputs: settled, keep, idColumn, ...(parameters && { parameters }) };
}

/** The same with what is wrong beside what is found, and nothing thrown. */
export function findMapping(wishes: MappingWishes): SettledMapping {
  const { columns, keep = [], signature, lines } = wishes;
  const problems: Violation[] = [];
  const byRequest = lines === 'requests' || lines === 'openai';
  const names = columns.map(({ name }) => name);
  const idColumn = idOf(wishes, names, byRequest, problems);
  if (byRequest) {
    for (const input of Object.keys(wishes.map ?? {})) {
      const expected = 'no mapping: each line holds its inputs by name';
      problems.push({ path: `map.${input}`, expected, received: wishes.map?.[input] as string });
    }
    return { inputs: [], keep: [...keep], idColumn, problems };
  }
  for (const [place, name] of keep.entries()) checkKept(name, `keep[${place}]`, names, problems);
  for (const input of Object.keys(wishes.map ?? {})) {
    if (!signature.inputs.some(({ name }) => name === input)) problems.push(unknownInput(input, wishes));
  }
  const free = columns.filter(({ name }) => name !== idColumn && !keep.includes(name));
  const inputs = signature.inputs.map((input) => settleInput(input, wishes, names, free));
  return { inputs, keep: [...keep], idColumn, problems };
}

/** The texts that settle it, as they are shown. */
export function mapTexts({ inputs }: Pick<Mapping, 'inputs'>): Record<string, string> {
  return Object.fromEntries(inputs.map(({ input, columns }) => [input, textOfColumns(columns)]));
}

function idOf(
  { idColumn, columns }: MappingWishes,
  names: readonly string[],
  byRequest: boolean,
  problems: Violation[],
): string | null {
  if (idColumn === undefined || idColumn === null) {
    return names.includes(DEFAULT_ID) || (byRequest && columns.length === 0) ? DEFAULT_ID : null;
  }
  if (!byRequest || columns.length > 0) checkKept(idColumn, 'id_column', names, problems);
  return idColumn;
}

function checkKept(name: string, path: string, names: readonly string[], problems: Violation[]): void {
  const count = names.filter((column) => column === name).length;
  if (count === 1) return;
  const expected = count === 0 ? `a column of the input${didYouMean(name, names)}` : `one column "${name}"`;
  problems.push({ path, expected, received: count === 0 ? `"${name}"` : `${count} of that name` });
}

function unknownInput(input: string, { signature, map }: MappingWishes): Violation {
  const names = signature.inputs.map(({ name }) => name);
  const near = nearNames(input, names);
  const hint = near.length > 0 && names.length > 1 ? ` (did you mean "${near[0]}"?)` : '';
  return {
    path: `map.${input}`,
    expected: `an input of ${signature.model}: ${listOf(names)}${hint}`,
    received: `"${input}" = ${map?.[input]}`,
  };
}

function settleInput(
  input: SignatureTensor,
  wishes: MappingWishes,
  names: readonly string[],
  free: readonly ColumnInfo[],
): SettledInput {
  const path = `map.${input.name}`;
  const text = wishes.map && Object.hasOwn(wishes.map, input.name) ? wishes.map[input.name] : undefined;
  if (text !== undefined) {
    const found = columnsNamed(text, names);
    if (!('columns' in found)) return unfound(input, { path, ...found });
    return shaped(input, infosOf(found.columns, wishes.columns), path);
  }
  const own = names.filter((name) => name === input.name).length;
  if (own === 1) return shaped(input, infosOf([input.name], wishes.columns), path);
  if (own > 1) {
    return unfound(input, { path, expected: `one column "${input.name}"`, received: `${own} of that name` });
  }
  if (wishes.signature.inputs.length > 1 || free.length === 0) return missing(input, names, path);
  return byDefault(input, free, path);
}

/** All columns that are neither kept nor the id; of an image, the one that can be it. */
function byDefault(input: SignatureTensor, free: readonly ColumnInfo[], path: string): SettledInput {
  const images = free.filter(({ type }) => type === 'bytes' || type === 'image');
  const columns = input.kind === 'image' && images.length === 1 ? images : free;
  const settled = shaped(input, columns, path);
  if (settled.problems.length === 0) return settled;
  const hint = ` (say which columns make "${input.name}", such as ${input.name}=${exampleOf(free)}, or keep the others)`;
  const problems = settled.problems.map((finding) => ({ ...finding, expected: finding.expected + hint }));
  return { ...settled, problems: problems.slice(0, 3) };
}

function exampleOf(free: readonly ColumnInfo[]): string {
  const text = textOfColumns(free.map(({ name }) => name));
  return text.length > 60 ? `[${free[0]?.name}, …]` : text;
}

function missing(input: SignatureTensor, names: readonly string[], path: string): SettledInput {
  return unfound(input, {
    path,
    expected: `a column "${input.name}", or which columns make it (${rowText(input)})${didYouMean(input.name, names)}`,
    received: 'neither',
  });
}

function unfound(input: SignatureTensor, problem: Violation): SettledInput {
  return { input, columns: [], rowShape: null, problems: [problem] };
}

function shaped(input: SignatureTensor, columns: readonly ColumnInfo[], path: string): SettledInput {
  const problems: Violation[] = [];
  const shape = shapeOfRow(input, columns);
  if (!('rowShape' in shape)) problems.push({ path, ...shape });
  for (const column of columns) {
    const expected = misfit(input, column);
    if (expected !== null) problems.push({ path, expected, received: describe(column) });
  }
  return {
    input,
    columns: [...columns],
    rowShape: 'rowShape' in shape ? shape.rowShape : null,
    problems,
  };
}

function infosOf(names: readonly string[], columns: readonly ColumnInfo[]): ColumnInfo[] {
  const byName = new Map(columns.map((column) => [column.name, column]));
  return names.map((name) => byName.get(name) as ColumnInfo);
}

function unsettled(problems: readonly Violation[]): RemudaError {
  const shown = problems
    .slice(0, 3)
    .map((one) => `${one.path}: expected ${one.expected}, received ${one.received}`);
  const more = problems.length > 3 ? ` (and ${problems.length - 3} more)` : '';
  return new RemudaError(
    'invalid_request',
    `the columns of the input do not make the inputs of the model: ${shown.join('; ')}${more}`,
    { violations: problems.slice(0, MOST_FINDINGS) },
  );
}
