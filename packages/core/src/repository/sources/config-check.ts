/** A model.yaml that came from a source is read before it replaces one that works. */

import { CONFIG_FILE } from '../manifests.js';
import { parseModelConfig } from '../model-config.js';
import { modelFilesOf } from '../model-file.js';
import { invalid, versionsOf } from './source-files.js';

/**
 * @param paths every file of the source
 * @throws RemudaError source_invalid with each fault and its line, or the file that a version lacks
 */
export function checkConfig(text: string, paths: readonly string[], model: string): void {
  const parsed = parseModelConfig(text);
  if (!('config' in parsed)) {
    const faults = parsed.faults.map(
      ({ line, message }) => `${CONFIG_FILE}${line === null ? '' : `:${line}`}: ${message}`,
    );
    throw invalid(`the source of ${model}: ${faults.join('; ')}`, { faults });
  }
  const { harness } = parsed.config;
  const models = modelFilesOf(parsed.config);
  const own = harness.startsWith('./') ? [harness.slice(2)] : [];
  const needed = [
    ...own,
    ...versionsOf(paths).flatMap((version) => models.map((file) => `${version}/${file}`)),
  ];
  const missing = needed.find((path) => !paths.includes(path));
  if (missing !== undefined)
    throw invalid(`the source of ${model} has no ${missing}, which ${CONFIG_FILE} names; publish it too`);
}
