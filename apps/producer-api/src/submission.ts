/** From a parsed body to a Submission: everything is checked here that can be, so that nothing invalid is ever stored. */
import type { Caller } from '@remuda/core/access/caller';
import { checkParameters, refuseUnsupported } from '@remuda/core/requests/check-parameters';
import type { ReservedId } from '@remuda/core/requests/idempotency';
import type { RequestUseCases, Submission } from '@remuda/core/requests/submission';
import { validateItems } from '@remuda/core/requests/validate-inputs';
import type { AllowedAddresses } from '@remuda/core/webhooks/address-rules';
import type { Lane } from '@remuda/schemas';
import type { ParsedBody } from './bodies/parsed-body.js';
import { checkWebhook } from './webhook-address.js';

export interface SubmissionContext {
  model: string;
  lane: Lane;
  traceId: string;
  caller: Caller;
  /** Where the call has an Idempotency-Key. */
  reserved?: ReservedId | undefined;
  /** Where webhooks may be sent to beside public addresses. */
  webhookAllowed: AllowedAddresses;
  /** Where the request stands in the body; [] but in a batch. */
  path: readonly PropertyKey[];
}

/** @throws InvalidInputError, and RemudaError as RequestUseCases.resolve */
export async function toSubmission(
  body: ParsedBody,
  { model, lane, traceId, caller, reserved, webhookAllowed, path }: SubmissionContext,
  useCases: Pick<RequestUseCases, 'resolve'>,
): Promise<Submission> {
  refuseUnsupported(body.options, path);
  checkWebhook(body.options.webhook, webhookAllowed, [...path, 'webhook']);
  const { version, metadata } = body.options;
  const target = await useCases.resolve({ model, version, stickyKey: metadata?.sticky_key });
  const { signature } = target;
  const parameters = checkParameters(body.options.parameters, signature, path);
  const { items, hasItems } = body.place(signature);
  return {
    model,
    target,
    options: { ...body.options, parameters },
    items: validateItems(items, signature),
    hasItems,
    lane,
    tenant: caller.tenant,
    keyId: caller.keyId,
    ...(reserved && { reserved }),
    traceId,
    path,
  };
}
