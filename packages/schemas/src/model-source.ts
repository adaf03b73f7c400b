/**
 * Where a model comes from: a folder, an http(s) address, an S3 bucket; and the manifest that lists its files. Secrets
 * have no place in it: a header's value may be "env:NAME", credentials of S3 come from the SDK's own chain.
 */
import * as z from 'zod';
import { ModelName } from './inference-request.js';

export const Sha256 = z
  .string()
  .regex(/^[0-9a-f]{64}$/, { error: 'expected a sha256 as 64 lower-case hex digits' })
  .describe('sha256 in lower-case hex.');

/** The name of a manifest in a folder or under a prefix. */
export const MANIFEST_FILE = 'manifest.json';

const SEGMENT = /^[^\p{Cc}\\/:*?"<>|.][^\p{Cc}\\/:*?"<>|]*$/u;
const PATH_RULE =
  'expected a path below the model folder, such as model.yaml or 1/model.onnx: relative, with "/", no "..", nothing hidden';

/** A file of a model, relative to the model's folder. */
export const SourcePath = z
  .string()
  .max(512)
  .refine((path) => path.split('/').every((segment) => SEGMENT.test(segment)), { error: PATH_RULE })
  .describe('Relative to the model folder, with "/": model.yaml, 1/model.onnx.');

export const LocalSource = z.strictObject({
  type: z.literal('local'),
  path: z.string().min(1).describe('Folder of the model, with model.yaml in it; it is used where it is.'),
});

export const HttpSource = z.strictObject({
  type: z.literal('http'),
  url: z
    .url({ protocol: /^https?$/, error: 'expected an http:// or https:// address' })
    .refine((url) => !/^https?:\/\/[^/?#]*@/.test(url), {
      error: 'a name or password in the address would be stored and shown; use headers with env:NAME',
    })
    .describe('A manifest (JSON), or one .onnx file.'),
  headers: z
    .record(z.string().regex(/^[\w!#$%&'*+.^`|~-]+$/), z.string())
    .optional()
    .describe('Sent to the host of url alone. A value "env:NAME" is looked up by the worker that fetches.'),
  sha256: Sha256.optional().describe('Of what url gives. Needed for an .onnx file.'),
});

export const S3Source = z.strictObject({
  type: z.literal('s3'),
  bucket: z.string().min(3).max(255),
  prefix: z
    .string()
    .max(900)
    .describe('Key of the model folder, without "/" at its ends; "": the whole bucket.'),
  region: z.string().min(1).optional().describe("Default: what the SDK's chain gives."),
  endpoint: z
    .url({ protocol: /^https?$/, error: 'expected an http:// or https:// address' })
    .optional()
    .describe('Address of an S3-compatible server; default: AWS.'),
  force_path_style: z
    .boolean()
    .optional()
    .describe('Bucket in the path, not in the host name. Default: true with an endpoint, else false.'),
});

export const ModelSourceSpec = z
  .discriminatedUnion('type', [LocalSource, HttpSource, S3Source])
  .meta({ id: 'ModelSourceSpec' });
export type ModelSourceSpec = z.infer<typeof ModelSourceSpec>;
export type LocalSource = z.infer<typeof LocalSource>;
export type HttpSource = z.infer<typeof HttpSource>;
export type S3Source = z.infer<typeof S3Source>;

export const ManifestFile = z.strictObject({
  path: SourcePath,
  size: z.int().min(0).describe('Bytes.'),
  sha256: Sha256,
  url: z
    .string()
    .min(1)
    .optional()
    .describe('http sources: where the file is, relative to the manifest. Default: path.'),
});
export type ManifestFile = z.infer<typeof ManifestFile>;

export const SourceManifest = z
  .strictObject({
    model: ModelName.optional().describe('When given, the model can only be registered under this name.'),
    files: z.array(ManifestFile).min(1).max(10_000),
  })
  .meta({ id: 'SourceManifest' });
export type SourceManifest = z.infer<typeof SourceManifest>;
