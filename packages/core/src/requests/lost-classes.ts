/**
 * Which device classes of which versions can run nothing any more while another allowed class can, and since when.
 * Pure but for its memory. What waits in their queues is moved by reroute-requests.ts.
 */
import type { DeviceClass, ModelSignature } from '@remuda/schemas';
import type { ClassFacts, ClassIndex } from '../fleet/class-index.js';

export interface LostClass {
  signature: ModelSignature;
  deviceClass: DeviceClass;
  /** broken: there are workers, but its runs keep failing. */
  kind: 'gone' | 'broken';
  /** Classes that can take over, with what the fleet offers there. */
  others: readonly ClassFacts[];
}

export class LostClasses {
  readonly #since = new Map<string, number>();

  /** @param afterMs a worker that restarts comes back within that: what waits need not move */
  update(signatures: Iterable<ModelSignature>, index: ClassIndex, now: number, afterMs: number): LostClass[] {
    const lost: LostClass[] = [];
    const seen = new Set<string>();
    for (const signature of signatures) {
      if (signature.affinity.length < 2) continue;
      const facts = index.get(`${signature.model}@${signature.version}`) ?? [];
      const able = facts.filter(
        ({ deviceClass, ready }) => ready > 0 && signature.affinity.includes(deviceClass),
      );
      if (able.length === 0) continue;
      for (const deviceClass of signature.affinity) {
        const kind = lossOf(facts.find((candidate) => candidate.deviceClass === deviceClass));
        if (kind === null) continue;
        const key = `${signature.model}@${signature.version}/${deviceClass}`;
        seen.add(key);
        const since = this.#since.get(key) ?? now;
        this.#since.set(key, since);
        if (now - since >= afterMs) lost.push({ signature, deviceClass, kind, others: able });
      }
    }
    for (const key of this.#since.keys()) if (!seen.has(key)) this.#since.delete(key);
    return lost;
  }
}

function lossOf(facts: ClassFacts | undefined): LostClass['kind'] | null {
  if (!facts) return 'gone';
  if (facts.ready + facts.coming > 0) return null;
  return facts.broken > 0 ? 'broken' : 'gone';
}
