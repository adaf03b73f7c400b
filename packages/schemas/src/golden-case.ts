/**
 * A golden case: inputs of a model version and what it must answer to them, as `golden/<name>.json` in the version
 * folder. A version whose golden cases do not hold takes no traffic. core/repository/golden-cases.ts reads them.
 */
import * as z from 'zod';
import { InputValue, Tensor } from './tensor.js';

/** An image input as a file beside the case. */
export const GoldenFile = z
  .strictObject({
    file: z
      .string()
      .regex(/^(?![/\\])(?!.*(?:^|[/\\])\.\.(?:[/\\]|$)).+$/, {
        error: 'a path inside the golden folder, without ".."',
      })
      .describe('Path of an image file, relative to the golden folder.'),
  })
  .meta({ id: 'GoldenFile' });
export type GoldenFile = z.infer<typeof GoldenFile>;

/** As in a request, or a file for an input that takes an image. */
export const GoldenInput = z.union([...InputValue.options, GoldenFile]);
export type GoldenInput = z.infer<typeof GoldenInput>;

/**
 * How far an output may be from what is expected: |actual - expected| <= abs + rel × |expected|, element by element.
 * Whole numbers and BOOL are held to `abs` alone (so by default they must be equal), BYTES must be equal.
 */
export const Tolerance = z
  .strictObject({
    abs: z.number().min(0).default(1e-4).describe('Absolute part.'),
    rel: z.number().min(0).default(1e-3).describe('Part relative to the expected value.'),
  })
  .describe('|actual - expected| <= abs + rel × |expected|; whole numbers and BOOL: abs alone; BYTES: equal.')
  .meta({ id: 'Tolerance' });
export type Tolerance = z.infer<typeof Tolerance>;

export const GoldenCase = z
  .strictObject({
    description: z.string().optional(),
    inputs: z
      .record(z.string().min(1).max(256), GoldenInput)
      .describe('Tensor, bare value or image file by input name.'),
    parameters: z.record(z.string(), z.unknown()).default({}).describe('As in a request.'),
    outputs: z
      .record(z.string().min(1).max(256), Tensor)
      .default({})
      .describe('Expected outputs by name; those that are not named are not compared.'),
    model_extra: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('Keys of model_extra that must be exactly so; others are not looked at.'),
    tolerance: Tolerance.default({ abs: 1e-4, rel: 1e-3 }),
  })
  .refine((golden) => Object.keys({ ...golden.outputs, ...golden.model_extra }).length > 0, {
    error: 'at least one expected output, or a key of model_extra',
  })
  .meta({ id: 'GoldenCase' });
export type GoldenCase = z.infer<typeof GoldenCase>;
