/**
 * Which execution providers really load on this machine: each runs a tiny model in a process of its own. The runtime's
 * list says only what was built in, so nothing is taken from it but that a provider is absent.
 */
import { DEVICE_CLASSES } from '@remuda/schemas';
import type { ProviderTrial } from '../harness/onnx-session.js';
import { oneAnswer } from './one-answer.js';

export interface ProviderProbe {
  /** cpu, cuda, … */
  provider: string;
  /** It ran the tiny model, all of it. */
  ok: boolean;
  /** Why not; null when ok. */
  reason: string | null;
  /** The provider that really ran: another one where a switch says so; null when none did. */
  ran: string | null;
}

export interface ProbeProvidersOptions {
  /** Default: every device class. */
  providers?: readonly string[];
  /** As in ModelSource: what is meant for one is tried with another. */
  providerSwitch?: Readonly<Record<string, string>>;
  /** For each; change it for machines whose GPU libraries take long to load. Default 60,000. */
  timeoutMs?: number;
}

const PROBE_TIMEOUT_MS = 60_000;

/** In the order of the providers. Never rejects: a library that crashes or hangs is a reason like any other. */
export async function probeProviders(options: ProbeProvidersOptions = {}): Promise<ProviderProbe[]> {
  const { providers = DEVICE_CLASSES, providerSwitch = {}, timeoutMs = PROBE_TIMEOUT_MS } = options;
  const trials = new Map<string, Promise<Omit<ProviderTrial, 'present'>>>();
  const probe = async (provider: string): Promise<ProviderProbe> => {
    const name = providerSwitch[provider] ?? provider;
    const trial = trials.get(name) ?? attempt(name, timeoutMs);
    trials.set(name, trial);
    const { ok, reason } = await trial;
    return { provider, ok, reason, ran: ok ? name : null };
  };
  return Promise.all(providers.map(probe));
}

async function attempt(provider: string, timeoutMs: number): Promise<Omit<ProviderTrial, 'present'>> {
  try {
    const entry = './provider-probe-child.js';
    // What native libraries print about hardware that is not there is no news.
    const how = { entry, from: import.meta.url, timeoutMs, stderr: 'ignore' as const };
    return await oneAnswer<ProviderTrial>(provider, how);
  } catch (error) {
    return { ok: false, reason: `the process that tried it ${(error as Error).message}` };
  }
}
