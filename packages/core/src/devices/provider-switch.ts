/**
 * For try-outs and tests on machines without a GPU: what is meant for the devices of one class runs on another
 * provider, "cuda=cpu" say. Everything around the run (rules, queues, routes) takes the device for what it says it is;
 * the provider that really ran is in each result. Never set in earnest.
 */
import { DEVICE_CLASSES, type DeviceClass } from '@remuda/schemas';

/** What runs, by what is meant: goes into ModelSource.providerSwitch. */
export type ProviderSwitch = Record<string, DeviceClass>;

/** "cuda=cpu,tensorrt=cpu". @throws Error that says what is wrong */
export function parseProviderSwitch(text: string): ProviderSwitch {
  const pairs = text
    .split(',')
    .map((pair) => pair.trim())
    .filter(Boolean);
  return Object.fromEntries(
    pairs.map((pair) => {
      const [from = '', to = '', ...rest] = pair.split('=').map((part) => part.trim());
      if (!isClass(from) || !isClass(to) || rest.length > 0)
        throw new Error(
          `"${pair}" is no switch of providers: write cuda=cpu, with two of ${DEVICE_CLASSES.join(', ')}`,
        );
      return [from, to];
    }),
  );
}

function isClass(text: string): text is DeviceClass {
  return (DEVICE_CLASSES as readonly string[]).includes(text);
}
