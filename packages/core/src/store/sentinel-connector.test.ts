/** Who ends what: ioredis ends the connector, a Sentinel's word only the connection to the old master. */
import { beforeEach, expect, it } from 'vitest';
import { sentinelConnector } from './sentinel-connector.js';

/** As ioredis's class: disconnect() ends the search for a master too. */
class Base {
  connecting = true;
  stream: { destroyed: boolean; destroy(): void } | undefined;
  failoverDetector: Detector | null = null;
  disconnect(): void {
    this.connecting = false;
    this.failoverDetector?.cleanup();
  }
}

class Detector {
  isDisconnected = false;
  constructor(private readonly connector: Base) {}
  cleanup(): void {
    this.isDisconnected = true;
  }
  /** A Sentinel has named a new master. */
  hear(): void {
    this.isDisconnected = true;
    this.connector.disconnect();
  }
}

const newStream = () => ({
  destroyed: false,
  destroy() {
    this.destroyed = true;
  },
});

let connector: Base;
let detector: Detector;
beforeEach(() => {
  const Connector = sentinelConnector(Base, undefined) as new () => Base;
  connector = new Connector();
  connector.stream = newStream();
  detector = new Detector(connector);
  connector.failoverDetector = detector;
});

it('the word of a Sentinel ends the connection, and not the search for the new master', () => {
  detector.hear();
  expect(connector.stream?.destroyed).toBe(true);
  expect(connector.connecting).toBe(true);
});

it('what ioredis ends is ended, before such a word and after it', () => {
  detector.hear();
  connector.disconnect();
  expect(connector.connecting).toBe(false);
});

it('of the next master it is heard again', () => {
  detector.hear();
  connector.stream = newStream();
  connector.failoverDetector = new Detector(connector);
  connector.failoverDetector.hear();
  expect(connector.stream?.destroyed).toBe(true);
  expect(connector.connecting).toBe(true);
});

it('what ioredis has ended stays so, also where it ends it twice', () => {
  connector.disconnect();
  connector.disconnect();
  expect(connector.connecting).toBe(false);
  expect(connector.stream?.destroyed).toBe(false);
});
