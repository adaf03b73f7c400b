/** `remuda models manifest`: lists the files of a model folder in manifest.json, so that it can be served from anywhere. */
import { resolve } from 'node:path';
import { writeManifest } from '@remuda/core/repository/sources/source-manifest';
import { MANIFEST_FILE } from '@remuda/schemas';
import { CliError, reasonOf } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { type CommandContext, printJson } from './context.js';

export interface ManifestFlags {
  name?: string;
  json?: boolean;
}

export async function manifest(
  folder: string,
  { name, json }: ManifestFlags,
  { terminal, config }: CommandContext,
): Promise<number> {
  const root = resolve(config.cwd, folder);
  const written = await writeManifest(root, { model: name }).catch((error: unknown) => {
    throw new CliError(reasonOf(error), EXIT.usage, { cause: error });
  });
  if (json) printJson(terminal, written);
  else {
    const bytes = written.files.reduce((sum, { size }) => sum + size, 0);
    terminal.out(`${resolve(root, MANIFEST_FILE)}: ${written.files.length} files, ${bytes} bytes`);
    terminal.out('Upload it after the files, and register the model with its address:');
    terminal.out(`  remuda models register ${name ?? 'NAME'} https://…/${MANIFEST_FILE}`);
  }
  return EXIT.ok;
}
