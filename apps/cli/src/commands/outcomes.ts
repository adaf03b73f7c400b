/** Outcomes of a request as one list: of its items, or of itself where it came with `inputs`. */
import type { InferenceResult, ItemResult } from '@remuda/schemas';

export type Outcome = Pick<ItemResult, 'id' | 'index' | 'outputs' | 'error' | 'metrics' | 'model_extra'> & {
  status: string;
};

export function outcomesOf(result: InferenceResult): Outcome[] {
  const { items, outputs, error, metrics, status, model_extra } = result;
  return items ?? [{ id: null, index: 0, status, outputs, error, metrics, model_extra }];
}
