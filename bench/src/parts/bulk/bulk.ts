/** bulk: files of rows in, a file out, against the loop that one would write by hand; and callers beside it. */
import type { PartContext } from '../part.js';
import { type BulkFileFigures, compareBulk } from './compare-bulk.js';
import type { InteractiveFigures } from './interactive.js';
import { classifierPlan, recogniserPlan } from './plans.js';
import { type TabularFigures, tabular } from './tabular.js';

export interface BulkFigures {
  classifier: BulkFileFigures;
  recogniser: BulkFileFigures;
  tabular: TabularFigures;
  interactive: InteractiveFigures;
}

export async function bulk(context: PartContext): Promise<BulkFigures> {
  const table = await tabular(context);
  const classifier = await compareBulk(classifierPlan(context), context);
  const recogniser = await compareBulk(recogniserPlan(context), context);
  return { classifier, recogniser, ...table };
}
