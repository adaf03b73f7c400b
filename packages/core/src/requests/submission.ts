/**
 * What the HTTP edge hands inward once everything is checked, and what comes back out: the use cases of a request as
 * one bundle, each in a file of its own beside this one.
 */
import type {
  CancelAnswer,
  Fleet,
  InferenceResult,
  ItemResult,
  Lane,
  ModelDetail,
  ModelSignature,
  ModelSummary,
  RawTensor,
  RequestOptions,
  RequestRecord,
  RequestStatus,
} from '@remuda/schemas';
import type { Sight } from '../access/caller.js';
import type { RemudaError } from '../errors.js';
import type { ModelAsk, Target } from '../models/model-resolver.js';
import type { KeptAnswer } from '../store/once-store.js';
import type { CallOnce, OnceCall, ReservedId } from './idempotency.js';
import type { Quota } from './quota.js';

/** One input set, checked against the signature. Tensors stand in the signature's order. */
export interface SubmittedItem {
  id: string | null;
  tensors: RawTensor[];
  /** The same as a stored frame, where they came as one; without parameters. */
  frame?: Buffer;
}

export interface Submission {
  /** As it was asked for. */
  model: string;
  /** Where it goes, as the edge resolved it to check the inputs; without it that is done at the submit. */
  target?: Target;
  options: RequestOptions;
  items: SubmittedItem[];
  /** False: the request came with `inputs`; its one item is presented as the request itself. */
  hasItems: boolean;
  lane: Lane;
  tenant: string;
  /** Id of the API key that it came with; null: none was asked for. */
  keyId: string | null;
  /** The id that was set aside for it, where the call has an Idempotency-Key. */
  reserved?: ReservedId;
  traceId: string;
  /** A chunk of a bulk job: its one item is a frame, and what it holds is not looked at before it runs. */
  chunk?: { id: string; rows: number };
  /** Where it stands in the body, for what is found out later; default: it is the body. */
  path?: readonly PropertyKey[];
}

/** A result whose outputs are still raw, so that the edge can choose between JSON and binary. */
export type RawResult = Omit<InferenceResult, 'outputs' | 'items'> & {
  hasItems: boolean;
  items: (Omit<ItemResult, 'outputs'> & { outputs: RawTensor[] | null })[];
};

export interface RequestFilter {
  model?: string;
  status?: RequestStatus;
  tenant?: string;
  /** Unix milliseconds, inclusive. */
  since?: number;
  until?: number;
  tag?: { key: string; value: string };
  limit: number;
  cursor?: string;
}

export interface SubmitAnswer {
  record: RequestRecord;
  known: boolean;
  /** What the limits that it counts in have left. */
  quotas: readonly Quota[];
}

/**
 * Every use case; all throw RemudaError with a catalogue code. Where a sight is given, requests that it does not show are
 * not known. The API gives one with every call.
 */
export interface RequestUseCases {
  /**
   * Model, version and signature that a request goes to.
   * @throws model_not_found (details.suggestions: near names), version_not_found, alias_not_found, model_not_loaded,
   * signature_unavailable
   */
  resolve(ask: ModelAsk): Promise<Target>;
  /** Of what a request for that version would get. @throws as resolve */
  signatureOf(model: string, version?: string): Promise<ModelSignature>;
  /** `known`: the same request_id with the same content had been accepted before. */
  submit(submission: Submission): Promise<SubmitAnswer>;
  /** Each accepted or refused on its own, in order; one write to Redis for all. */
  submitMany(submissions: readonly Submission[]): Promise<(SubmitAnswer | RemudaError)[]>;
  /**
   * A call with an Idempotency-Key: the answer that it had, or the call to be made, with ids for its requests.
   * @throws idempotency_in_progress, idempotency_mismatch
   */
  beginOnce(call: OnceCall): Promise<KeptAnswer | CallOnce>;
  /**
   * What speaks against any request, before anything of it is read: queue or tenant over a limit, Redis full. undefined:
   * nothing, as far as is known without asking.
   * @param model as it was asked for; undefined: not known yet
   */
  refusal(model: string | undefined, lane: Lane, tenant: string): RemudaError | undefined;
  get(requestId: string, sight?: Sight): Promise<RequestRecord>;
  /** Waits until the request is terminal or `ms` have passed, whichever is first; the record as it then is. */
  waitFor(requestId: string, ms: number, signal?: AbortSignal, sight?: Sight): Promise<RequestRecord>;
  /** null while the request has not ended. */
  result(requestId: string, sight?: Sight): Promise<RawResult | null>;
  list(
    filter: RequestFilter,
    sight?: Sight,
  ): Promise<{ requests: RequestRecord[]; next_cursor: string | null }>;
  /** @throws request_terminal, request_not_found */
  cancel(requestId: string, sight?: Sight): Promise<CancelAnswer>;
  models(): Promise<ModelSummary[]>;
  model(name: string): Promise<ModelDetail>;
  fleet(): Promise<Fleet>;
}
