/**
 * Finds the axis along which rows of a model stand, for each input and output, from the names of its symbolic axes
 * alone. Pure. A wrong guess would mix rows of different requests without a word, so where the names leave a doubt
 * the answer is "none" (rows run one by one) and the configuration's `batch_axis` has the last word.
 */

/** A tensor as the model file declares it: a number is a fixed size, a string a symbolic axis ('' where unnamed). */
export interface DeclaredTensor {
  name: string;
  shape: readonly (number | string)[];
}

/** Batch axis by tensor name; null: the tensor has none. */
export type BatchAxes = Map<string, number | null>;

export interface FoundAxes {
  inputs: BatchAxes;
  outputs: BatchAxes;
}

/** Names that exporters give to the axis of rows. */
const LOOKS_LIKE_ROWS = /^(n|b|bs|batch|.*batch.*)$/i;
/** Names that say the axis is something else, though it may stand first. */
const LOOKS_LIKE_LENGTH = /(seq|len|time|frame|sample|height|width|token)/i;

/**
 * Batch axes of a model's tensors.
 * @param overrides `batch_axis` of the configuration: by tensor name, an axis or null
 */
export function findBatchAxes(
  inputs: readonly DeclaredTensor[],
  outputs: readonly DeclaredTensor[],
  overrides: Readonly<Record<string, number | null>> = {},
): FoundAxes {
  const symbol = overriddenSymbol(inputs, overrides) ?? sharedSymbol(inputs, outputs);
  const found = new Map(inputs.map((input) => [input.name, inputAxis(input, symbol, overrides)]));
  const batchable = [...found.values()].some((axis) => axis !== null);
  const known = new Set(inputs.flatMap((input) => input.shape));
  return {
    inputs: found,
    outputs: new Map(
      outputs.map((output) => [output.name, outputAxis(output, { symbol, overrides, batchable, known })]),
    ),
  };
}

/** The name of the axis that the configuration points at, so that the other tensors follow. */
function overriddenSymbol(
  inputs: readonly DeclaredTensor[],
  overrides: Readonly<Record<string, number | null>>,
): string | undefined {
  for (const { name, shape } of inputs) {
    const axis = overrides[name];
    const dim = axis === undefined || axis === null ? undefined : shape[axis];
    if (typeof dim === 'string' && dim !== '') return dim;
  }
  return undefined;
}

/** The symbolic axis that every input with symbolic axes has; undefined when there is none that can be trusted. */
function sharedSymbol(
  inputs: readonly DeclaredTensor[],
  outputs: readonly DeclaredTensor[],
): string | undefined {
  const dynamic = inputs.filter(({ shape }) => shape.some((dim) => typeof dim === 'string'));
  if (dynamic.length === 0) return undefined;
  if (dynamic.every(({ shape }) => shape[0] === '')) return '';

  const [first, ...others] = dynamic as [DeclaredTensor, ...DeclaredTensor[]];
  const shared = first.shape.filter(
    (dim): dim is string =>
      typeof dim === 'string' && dim !== '' && others.every(({ shape }) => shape.includes(dim)),
  );
  const leads = (symbol: string): number =>
    [...dynamic, ...outputs].filter(({ shape }) => shape[0] === symbol).length;
  const trusted = shared.filter((symbol) => {
    if (LOOKS_LIKE_ROWS.test(symbol)) return true;
    // An axis that never stands first may be a length: joining lengths would answer, and answer wrongly.
    return leads(symbol) > 0 && !LOOKS_LIKE_LENGTH.test(symbol);
  });
  return trusted.sort((a, b) => leads(b) - leads(a))[0];
}

function inputAxis(
  { name, shape }: DeclaredTensor,
  symbol: string | undefined,
  overrides: Readonly<Record<string, number | null>>,
): number | null {
  const override = overrides[name];
  if (override !== undefined) return override;
  return symbol === undefined ? null : axisOf(symbol, shape);
}

function axisOf(symbol: string, shape: readonly (number | string)[]): number | null {
  const axis = symbol === '' ? (shape[0] === '' ? 0 : -1) : shape.indexOf(symbol);
  return axis < 0 ? null : axis;
}

interface OutputContext {
  symbol: string | undefined;
  overrides: Readonly<Record<string, number | null>>;
  batchable: boolean;
  /** Every dim of the inputs. */
  known: ReadonlySet<number | string>;
}

/**
 * Exporters often lose the name on the way through the graph: then a symbolic first axis is the rows, unless its name
 * belongs to another axis of an input. Every run checks it against the rows it was given.
 */
function outputAxis({ name, shape }: DeclaredTensor, context: OutputContext): number | null {
  const override = context.overrides[name];
  if (override !== undefined) return override;
  if (!context.batchable) return null;
  const named = context.symbol === undefined ? null : axisOf(context.symbol, shape);
  if (named !== null) return named;
  const first = shape[0];
  if (typeof first !== 'string') return null;
  return first === '' || !context.known.has(first) ? 0 : null;
}
