/** A log line for people at a terminal: time, level, service, message, then the fields as key=value. */

/** A JSON log line as a short one; what is no JSON object stays as it is. */
export function prettyLine(json: string): string {
  const parsed = parseObject(json);
  if (!parsed) return json;
  const { time, level, service, msg, pid, err, ...fields } = parsed;
  const clock = String(time).slice(11, 23);
  const shown = Object.entries(fields).map(([key, value]) => `${key}=${shortValue(value)}`);
  const head = [clock, String(level).toUpperCase().padEnd(5), service, msg, ...shown].join(' ');
  return `${head}${errorText(err)}\n`;
}

function parseObject(json: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(json) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

function shortValue(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}

function errorText(err: unknown): string {
  const stack = (err as { stack?: unknown } | undefined)?.stack;
  return typeof stack === 'string' ? `\n  ${stack.replaceAll('\n', '\n  ')}` : '';
}
