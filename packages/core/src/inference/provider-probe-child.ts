/** Entry of the throw-away process that probe-providers.ts starts: tries one provider, says what came of it, is killed. */
import './native-telemetry.js';
import { type ProviderTrial, tryProvider } from '../harness/onnx-session.js';

process.once('message', (provider: string) => {
  void tryProvider(provider).then((trial: ProviderTrial) => process.send?.(trial));
});
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
