/** What a runner needs of the store. RequestStore is one; tests have one of their own. */
import type { Claim, UnitWrite, WriteVerdict } from '../store/outcome.js';
import type { BatchUnit } from './runner-protocol.js';

export interface RunnerStore {
  /** @param begun the items have begun to run in this attempt: then their deadline to start is met. Default: false */
  claimAndFetch(units: readonly BatchUnit[], workerId: string, begun?: boolean): Promise<Claim[]>;
  writeOutcomes(writes: readonly UnitWrite[]): Promise<WriteVerdict[]>;
}
