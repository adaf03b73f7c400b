/**
 * From the `harness` of a model.yaml to the definition behind it: a built-in kind by its file name in ./kinds, or
 * "./file.mjs" in the folder that holds the model.yaml. There is no list to extend: a new kind is a new file.
 * Also the one place where model_kwargs are checked.
 */
import { readdirSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { dirname, extname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { violationsOf } from '@remuda/schemas';
import * as z from 'zod';
import { ModelLoadError } from '../errors.js';
import type { HarnessDefinition, HarnessExport, HarnessToolbox, ModelSource } from './harness.js';

const KINDS = new URL('./kinds/', import.meta.url);
/** .js in the build; .ts when a test runner runs the sources. */
const EXTENSION = extname(new URL(import.meta.url).pathname);
const KIND_NAME = /^[a-z][a-z0-9-]{0,63}$/;
const OWN_FILE = /^\.\/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\.m?js$/;

/** A definition together with the source whose model_kwargs it has accepted. */
export interface ResolvedHarness {
  definition: HarnessDefinition;
  source: ModelSource;
}

/** Finds the definition of a model and checks its model_kwargs. @throws ModelLoadError naming the harness or key */
export async function resolveHarness(source: ModelSource): Promise<ResolvedHarness> {
  const definition = await definitionOf(source);
  const kwargs = definition.kwargs.safeParse(source.config.model_kwargs);
  if (!kwargs.success) {
    const findings = violationsOf(kwargs.error, source.config.model_kwargs, ['model_kwargs']);
    throw new ModelLoadError(
      `${source.modelId}: ${findings.map((v) => `${v.path}: expected ${v.expected}, received ${v.received}`).join('; ')}`,
      { harness: source.config.harness, errors: findings },
    );
  }
  const config = { ...source.config, model_kwargs: kwargs.data as Record<string, unknown> };
  return { definition, source: { ...source, config } };
}

/** Names of the built-in kinds. */
export function knownKinds(): string[] {
  return readdirSync(KINDS)
    .filter((file) => file.endsWith(EXTENSION) && !file.endsWith('.d.ts') && !file.includes('.test.'))
    .map((file) => file.slice(0, -EXTENSION.length))
    .sort();
}

/** A file of the model's own, not a built-in kind. */
export function isOwnKind(harness: string): boolean {
  return harness.startsWith('.') || harness.includes('/');
}

async function definitionOf(source: ModelSource): Promise<HarnessDefinition> {
  const { harness } = source.config;
  if (isOwnKind(harness)) return ownKind(source);
  try {
    return await builtInKind(harness);
  } catch (error) {
    if (!(error instanceof ModelLoadError)) throw error;
    throw new ModelLoadError(`${source.modelId}: ${error.message}`, error.details, { cause: error });
  }
}

async function builtInKind(name: string): Promise<HarnessDefinition> {
  const known = knownKinds();
  if (!KIND_NAME.test(name) || !known.includes(name)) {
    throw new ModelLoadError(
      `there is no harness "${name}"; known are ${known.join(', ')}, or "./file.mjs" beside model.yaml`,
      { harness: name, known },
    );
  }
  return definitionIn(new URL(`${name}${EXTENSION}`, KINDS).href, name);
}

async function ownKind(source: ModelSource): Promise<HarnessDefinition> {
  const { harness } = source.config;
  if (!OWN_FILE.test(harness)) {
    throw new ModelLoadError(
      `${source.modelId}: harness ${JSON.stringify(harness)} must be a kind's name or "./file.mjs" beside model.yaml`,
      { harness },
    );
  }
  const path = join(dirname(source.folder), harness);
  try {
    await access(path);
  } catch (cause) {
    throw new ModelLoadError(`${source.modelId}: harness file ${path} is missing`, { file: path }, { cause });
  }
  const url = pathToFileURL(path);
  // Modules are kept by their address: a file that has changed is another digest, and must not be the old module.
  url.search = source.digest;
  return definitionIn(url.href, path);
}

async function definitionIn(url: string, name: string): Promise<HarnessDefinition> {
  let module: { definition?: HarnessExport };
  try {
    module = await import(/* @vite-ignore */ url);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ModelLoadError(`harness ${name} cannot be imported: ${reason}`, { harness: name }, { cause });
  }
  const exported = module.definition;
  const definition = typeof exported === 'function' ? await exported(toolbox) : exported;
  if (typeof definition?.create !== 'function') {
    throw new ModelLoadError(`harness ${name} must export "definition" (see HarnessDefinition)`, {
      harness: name,
    });
  }
  return {
    ...definition,
    kwargs: definition.kwargs ?? z.strictObject({}),
    parameters: definition.parameters ?? null,
  };
}

const toolbox: HarnessToolbox = { kind: builtInKind, z };
