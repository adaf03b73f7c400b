/** The detail of an entry of a model's history as a person reads it: what moved first, then the rest as name=value. */

type Detail = Readonly<Record<string, unknown>>;

export function eventText(detail: Detail): string {
  // The rule of a rollback stands in the split that it ended; its numbers are what is looked for.
  const { ref, from, to, reason, rule: _, ...rest } = detail;
  const move = ref === undefined ? [] : [`${valueText(ref)}: ${endText(from)} → ${endText(to)}`];
  const others = Object.entries(rest)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${name}=${valueText(value)}`);
  return [...move, ...others, ...(reason === undefined ? [] : [valueText(reason)])].join(', ');
}

function endText(version: unknown): string {
  return version === null || version === undefined ? 'none' : valueText(version);
}

function valueText(value: unknown): string {
  if (typeof value === 'number') return String(Number(value.toPrecision(4)));
  if (typeof value !== 'object' || value === null) return String(value);
  if (Array.isArray(value)) return `[${value.map(valueText).join(' ')}]`;
  const inner = Object.entries(value).map(([name, one]) => `${name}=${valueText(one)}`);
  return `{${inner.join(' ')}}`;
}
