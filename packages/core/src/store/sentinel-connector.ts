/**
 * ioredis's connector behind Sentinels, with two things changed.
 *
 * Once a Sentinel says that there is a new master, the connection to the old one goes, and nothing else happens. ioredis
 * would also stop looking for a master if it was just doing that, and the connection would have ended for ever.
 *
 * And what is read may go into one buffer (onread-connector.ts): what the connector finds out about the master is what it
 * gives to Node to connect to, so the buffer goes in there.
 */
import type { Socket } from 'node:net';
import { intoOneBuffer, type TakeBytes } from './onread-connector.js';

/** What is used of ioredis's class; most of it is not told by its types. */
interface BaseConnector {
  stream: Socket | undefined;
  failoverDetector: { isDisconnected: boolean; cleanup(): void } | null;
  disconnect(): void;
  resolve(endpoint: unknown): Promise<object | null>;
}

/** A class for ioredis's option `Connector`. @param base its SentinelConnector */
export function sentinelConnector(base: unknown, take: TakeBytes | undefined): unknown {
  const Base = base as new (options: unknown) => BaseConnector;
  return class extends Base {
    #heeded: BaseConnector['failoverDetector'] = null;

    /** Called by ioredis for good, and by the detector, which marks itself first. */
    override disconnect(): void {
      const detector = this.failoverDetector;
      const told = detector?.isDisconnected && detector !== this.#heeded ? detector : null;
      this.#heeded = detector;
      if (!told) {
        super.disconnect();
        return;
      }
      told.cleanup();
      // A master that hangs would not answer a polite end.
      this.stream?.destroy();
    }

    override async resolve(endpoint: unknown): Promise<object | null> {
      const found = await super.resolve(endpoint);
      if (!found || !take) return found;
      return { ...found, onread: intoOneBuffer(take, () => this.stream) };
    }
  };
}
