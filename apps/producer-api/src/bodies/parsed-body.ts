/** What every kind of body becomes: the options of a request, and its inputs as soon as the signature is known. */
import type { GivenItem } from '@remuda/core/requests/validate-inputs';
import type { ModelSignature, RequestOptions } from '@remuda/schemas';

export interface PlacedInputs {
  items: GivenItem[];
  /** False: the request came with `inputs`; its one item is the request itself. */
  hasItems: boolean;
}

export interface ParsedBody {
  options: RequestOptions;
  /** What it holds, equal for equal content: for idempotency keys. */
  content(): string;
  /** Which input is an image, and how many there are, only the signature says. @throws InvalidInputError */
  place(signature: ModelSignature): PlacedInputs;
}
