/**
 * Entry of the throw-away process that inspect-model.ts starts: loads one model, says what it takes and gives, and
 * is killed. A file that crashes the native library takes down nothing else.
 */
import './native-telemetry.js';
import { toItemError } from '../errors.js';
import type { ModelSource } from '../harness/harness.js';
import { resolveHarness } from '../harness/registry.js';
import type { Inspection } from './inspect-model.js';
import { buildSignature } from './model-signature.js';

process.once('message', (source: ModelSource) => {
  void inspect(source).then((inspection) => process.send?.(inspection));
});
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));

async function inspect(given: ModelSource): Promise<Inspection> {
  try {
    const { definition, source } = await resolveHarness(given);
    const tensors = await definition.create().load(source);
    return { ok: true, signature: buildSignature(definition, source, tensors) };
  } catch (error) {
    return { ok: false, error: toItemError(error, 'model_load_failed') };
  }
}
