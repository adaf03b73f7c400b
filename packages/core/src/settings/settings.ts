/** Settings from environment variables: zod checks them, unknown REMUDA_* ones are errors that list the known ones. */
import type * as z from 'zod';
import { nearNames } from '../repository/near-names.js';
import { shownAddress } from '../store/redis-address.js';

/** What commands take, wherever it turns up beside what else begins with REMUDA_API_. */
const COMMANDS = /^REMUDA_(URL|API_KEY)$/;
/** Variables that other parts of Remuda read; not an error wherever they turn up. */
const FOREIGN = /^REMUDA_(API|WORKER|TEST|SETUP)/;

/**
 * @param env process.env of an app; nothing in core reads it by itself
 * @throws Error with one line for each variable that is wrong or unknown
 */
export function readSettings<Shape extends z.ZodRawShape>(
  schema: z.ZodObject<Shape>,
  env: Readonly<Record<string, string | undefined>>,
): z.output<z.ZodObject<Shape>> {
  const known = Object.keys(schema.shape);
  const own = ownPrefixes(known);
  const faults = Object.keys(env)
    .filter((name) => name.startsWith('REMUDA_') && !known.includes(name))
    .filter((name) => !COMMANDS.test(name))
    .filter((name) => own.some((prefix) => name.startsWith(prefix)) || !FOREIGN.test(name))
    .map((name) => unknownVariable(name, known));
  const given = Object.fromEntries(
    known.filter((name) => env[name] !== undefined && env[name] !== '').map((name) => [name, env[name]]),
  );
  const parsed = schema.safeParse(given);
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      const name = String(issue.path[0]);
      faults.push(`${name}: ${issue.message}, received ${shown(env[name])}. ${describe(schema, name)}`);
    }
  }
  if (faults.length > 0 || !parsed.success)
    throw new Error(`The environment is not right:\n  ${faults.join('\n  ')}`);
  return parsed.data;
}

/** Without the user and the password of an address. */
function shown(value: string | undefined): string {
  return JSON.stringify(value === undefined ? value : shownAddress(value));
}

/** REMUDA_WORKER_ for a schema with REMUDA_WORKER_PORT. */
function ownPrefixes(known: readonly string[]): string[] {
  return [
    ...new Set(
      known
        .filter((name) => !COMMANDS.test(name))
        .flatMap((name) => /^REMUDA_(?:API|WORKER)_/.exec(name)?.[0] ?? []),
    ),
  ];
}

function unknownVariable(name: string, known: readonly string[]): string {
  const near = nearNames(name, known);
  const hint = near.length > 0 ? `did you mean ${near.join(' or ')}?` : `known are ${known.join(', ')}`;
  return `${name} is not a setting; ${hint}`;
}

function describe(schema: z.ZodObject, name: string): string {
  return (schema.shape[name] as z.ZodType | undefined)?.description ?? '';
}
