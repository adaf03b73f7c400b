/**
 * Whether the execution providers of this worker's devices really load, tried once in processes of their own, a while
 * after the start so that models load first. Said in heartbeats; what a model runs on is found out by its own load.
 */
import { probeProviders } from '@remuda/core/inference/probe-providers';
import type { Clock } from '@remuda/core/lifecycle/clock';
import type { Service } from '@remuda/core/lifecycle/service';
import type { DeviceStatus } from '@remuda/schemas';

export interface ProviderTrialsOptions {
  /** Each once. */
  deviceClasses: readonly string[];
  providerSwitch: Record<string, string>;
  clock: Clock;
  onFailure(provider: string, reason: string): void;
  afterMs?: number;
}

const AFTER_MS = 5_000;

export class ProviderTrials implements Service {
  readonly name = 'provider trials';
  readonly #options: ProviderTrialsOptions;
  readonly #results = new Map<string, DeviceStatus['providers'][number]>();
  #cancel: (() => void) | undefined;

  constructor(options: ProviderTrialsOptions) {
    this.#options = options;
  }

  /** Empty before they were tried. */
  of(deviceClass: string): DeviceStatus['providers'] {
    const result = this.#results.get(deviceClass);
    return result ? [result] : [];
  }

  async start(): Promise<void> {
    const { clock, afterMs = AFTER_MS } = this.#options;
    this.#cancel = clock.after(afterMs, () => void this.#try());
  }

  async stop(): Promise<void> {
    this.#cancel?.();
  }

  async #try(): Promise<void> {
    const { deviceClasses, providerSwitch, onFailure } = this.#options;
    for (const { provider, ok, reason, ran } of await probeProviders({
      providers: deviceClasses,
      providerSwitch,
    })) {
      const switched = ok && ran !== provider ? `switched to ${ran}` : null;
      this.#results.set(provider, { provider, ok, reason: reason ?? switched });
      if (!ok) onFailure(provider, reason ?? 'it did not say why');
    }
  }
}
