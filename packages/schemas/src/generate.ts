/**
 * Writes ../json/<Name>.schema.json for each published shape, or with --check fails when a committed file differs
 * from what the zod schemas say. Usage: node dist/generate.js [--check]
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import * as schemas from './index.js';

const folder = fileURLToPath(new URL('../json/', import.meta.url));

/** JSON Schema text by file name, for every exported zod schema that has an id. */
export function jsonSchemas(): Map<string, string> {
  const files = new Map<string, string>();
  for (const exported of Object.values(schemas)) {
    if (!(exported instanceof z.ZodType)) continue;
    const id = z.globalRegistry.get(exported)?.id;
    if (id === undefined) continue;
    const schema = z.toJSONSchema(exported, { target: 'draft-2020-12', io: 'input' });
    files.set(`${id}.schema.json`, `${JSON.stringify(schema, null, 2)}\n`);
  }
  return files;
}

/** The committed files that differ from the schemas: changed, missing, or no longer generated. */
export function driftedFiles(): string[] {
  const wanted = jsonSchemas();
  const present = readdirSync(folder).filter((name) => name.endsWith('.schema.json'));
  const stale = present.filter((name) => !wanted.has(name));
  const changed = [...wanted].filter(([name, text]) => {
    return !present.includes(name) || readFileSync(join(folder, name), 'utf8') !== text;
  });
  return [...changed.map(([name]) => name), ...stale].sort();
}

function write(): void {
  mkdirSync(folder, { recursive: true });
  const wanted = jsonSchemas();
  for (const name of readdirSync(folder)) if (!wanted.has(name)) rmSync(join(folder, name));
  for (const [name, text] of wanted) writeFileSync(join(folder, name), text);
  console.log(`${wanted.size} JSON Schemas written to packages/schemas/json`);
}

function check(): void {
  const drifted = driftedFiles();
  if (drifted.length === 0) {
    console.log('JSON Schemas are as the zod schemas say.');
    return;
  }
  console.error(
    `JSON Schemas differ from the zod schemas: ${drifted.join(', ')}\nRun "pnpm schemas" and commit the result.`,
  );
  process.exitCode = 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv.includes('--check')) check();
  else write();
}
