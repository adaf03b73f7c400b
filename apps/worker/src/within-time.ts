/** Waits for something, but not for longer than that: for stops, which must end though Redis or a model does not. */
import type { Clock } from '@remuda/core/lifecycle/clock';

/** False: it had not ended after `ms`. @param work does not reject */
export function endsWithin(ms: number, work: Promise<unknown>, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.after(ms, () => resolve(false));
    void work.then(() => {
      cancel();
      resolve(true);
    });
  });
}
