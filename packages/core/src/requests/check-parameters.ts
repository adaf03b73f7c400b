/** What a request asks for beside its inputs, against what the model and this server offer. */
import {
  InvalidInputError,
  type ModelSignature,
  type RequestOptions,
  refuse,
  type Violation,
  violationsOf,
} from '@remuda/schemas';
import * as z from 'zod';

type Path = readonly PropertyKey[];

/** @throws InvalidInputError unsupported_feature */
export function refuseUnsupported({ stream }: RequestOptions, path: Path): void {
  if (!stream) return;
  refuse([...path, 'stream'], 'no streaming: the model cannot stream', 'true', 'unsupported_feature');
}

/** Schemas are kept by the digest of the model version; this many versions are more than any server sees at once. */
const MOST_SCHEMAS = 1_000;
const schemas = new Map<string, z.ZodType>();

/**
 * The parameters with the defaults of the model filled in, so that what is left out and what is given as the default
 * share a batch.
 * @throws InvalidInputError invalid_parameter
 */
export function checkParameters(
  given: RequestOptions['parameters'],
  signature: ModelSignature,
  path: Path,
): RequestOptions['parameters'] {
  if (signature.parameters_schema === null) {
    const names = Object.keys(given ?? {});
    if (names.length > 0)
      throw invalid(names.map((name) => unknown([...path, 'parameters', name], signature)));
    return undefined;
  }
  const parsed = schemaOf(signature).safeParse(given ?? {});
  if (!parsed.success) throw invalid(violationsOf(parsed.error, given ?? {}, [...path, 'parameters']));
  return parsed.data as RequestOptions['parameters'];
}

function schemaOf({ digest, parameters_schema }: ModelSignature): z.ZodType {
  const known = schemas.get(digest);
  if (known) return known;
  if (schemas.size >= MOST_SCHEMAS) schemas.clear();
  const schema = z.fromJSONSchema(parameters_schema as Parameters<typeof z.fromJSONSchema>[0]);
  schemas.set(digest, schema);
  return schema;
}

function invalid(violations: readonly Violation[]): InvalidInputError {
  return new InvalidInputError(violations, 'invalid_parameter');
}

function unknown(path: Path, { model }: ModelSignature): Violation {
  const at = path.map(String).join('.');
  return { path: at, expected: `no parameters: ${model} takes none`, received: `"${String(path.at(-1))}"` };
}
