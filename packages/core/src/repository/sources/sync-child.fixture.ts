/** A process that syncs one model and tells its parent how it went: for tests that kill it, or run several. */
import { SourceCache } from './source-cache.js';

const [folder = '', url = ''] = process.argv.slice(2);
const cache = new SourceCache({
  folder,
  pauseMs: 10,
  onProgress: ({ bytes }) => process.send?.({ bytes }),
});
try {
  process.send?.({ result: await cache.sync('m', { type: 'http', url }) });
} catch (error) {
  process.send?.({ failed: String(error) });
}
process.disconnect();
