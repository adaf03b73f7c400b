/** From a parsed body to a Submission: everything is checked here that can be, so that nothing invalid is ever stored. */
import type { RequestUseCases, Submission } from '@remuda/core/requests/submission';
import { validateItems } from '@remuda/core/requests/validate-inputs';
import type { Lane } from '@remuda/schemas';
import type { ParsedBody } from './bodies/parsed-body.js';
import { checkParameters, refuseUnsupported } from './parameters.js';

export interface SubmissionContext {
  model: string;
  lane: Lane;
  traceId: string;
  /** Where the request stands in the body; [] but in a batch. */
  path: readonly PropertyKey[];
}

/** Every request belongs to a tenant; until there are keys, to this one. */
const TENANT = 'default';

/** @throws InvalidInputError, RemudaError model_not_found, version_not_found, signature_unavailable */
export async function toSubmission(
  body: ParsedBody,
  { model, lane, traceId, path }: SubmissionContext,
  useCases: Pick<RequestUseCases, 'signatureOf'>,
): Promise<Submission> {
  refuseUnsupported(body.options, path);
  const signature = await useCases.signatureOf(model, body.options.version);
  const parameters = checkParameters(body.options.parameters, signature, path);
  const { items, hasItems } = body.place(signature);
  return {
    model,
    options: { ...body.options, parameters },
    items: validateItems(items, signature),
    hasItems,
    lane,
    tenant: TENANT,
    traceId,
  };
}
