/** What a runner needs of the store. RequestStore is one; tests have one of their own. */
import type { Claim, UnitWrite, WriteVerdict } from '../store/outcome.js';
import type { BatchUnit } from './runner-protocol.js';

export interface RunnerStore {
  claimAndFetch(units: readonly BatchUnit[], workerId: string): Promise<Claim[]>;
  writeOutcomes(writes: readonly UnitWrite[]): Promise<WriteVerdict[]>;
}
