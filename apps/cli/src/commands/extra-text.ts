/** What a harness adds beside the outputs (model_extra), as lines: `feels warm`. */
import type { Outcome } from './outcomes.js';

const MOST_CHARACTERS = 100;

/** @param ofItems whether each line says whose it is */
export function extraLines(outcomes: readonly Outcome[], ofItems: boolean): string[] {
  return outcomes.flatMap(({ id, index, model_extra }) =>
    Object.entries(model_extra).map(
      ([name, value]) => `${ofItems ? `${id ?? index}: ` : ''}${name} ${shortened(valueText(value))}`,
    ),
  );
}

/** A text as it is, several in a row; whatever is nested as JSON. */
function valueText(value: unknown): string {
  if (typeof value === 'string') return value;
  const isFlat = Array.isArray(value) && value.every((part) => typeof part !== 'object' || part === null);
  return isFlat ? value.map(String).join(', ') : JSON.stringify(value);
}

function shortened(text: string): string {
  const line = text.replace(/[\r\n\t]+/g, ' ');
  return line.length > MOST_CHARACTERS ? `${line.slice(0, MOST_CHARACTERS)}…` : line;
}
