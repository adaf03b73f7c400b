/**
 * profile: does the coarse-to-fine search of `remuda models profile` find what a full sweep would? Both are done in one
 * run on one machine; then what it recommends and what the full sweep found best run turn by turn, so that neither gets
 * the quieter minute. No Redis and no worker: the search measures models alone.
 */
import { join } from 'node:path';
import { probeMachine } from '@remuda/core/devices/probe';
import { type ProfileOptions, profileModel } from '@remuda/core/profile/profile-model';
import type { Setting, SweepPoint } from '@remuda/core/profile/recommendation';
import { scanRepository, toModelSource } from '@remuda/core/repository/manifests';
import { ROOT } from '../rig/bench-models.js';
import { median, round } from '../rig/statistics.js';
import type { PartContext } from './part.js';

/** Sizes as requests have them; batches up to where both models are long past their best. */
const MODELS = {
  'text-direction-tensor': { maxBatch: 32, trial: { dims: { 'x.2': 48, 'x.3': 192 } } },
  'text-recognition-tensor': { maxBatch: 8, trial: { dims: { 'x.3': 320 } } },
} as const satisfies Record<string, Partial<ProfileOptions>>;

export interface ProfileFigures {
  recommended: Setting;
  best: Setting;
  /** Of both, turn by turn. */
  recommended_rows_per_s: number;
  best_rows_per_s: number;
  ratio: number;
  /** Single measurements of each search. */
  measurements: number;
  full_measurements: number;
}

export async function profile(context: PartContext): Promise<Record<string, ProfileFigures>> {
  const figures: Record<string, ProfileFigures> = {};
  for (const [name, options] of Object.entries(MODELS)) figures[name] = await compare(name, options, context);
  return figures;
}

async function compare(
  name: string,
  options: (typeof MODELS)[keyof typeof MODELS],
  { quick, rounds, log }: PartContext,
): Promise<ProfileFigures> {
  const { models } = await scanRepository(join(ROOT, 'models'));
  const model = models.find((candidate) => candidate.name === name);
  if (!model) throw new Error(`${name} is not there: node models/prepare.mjs`);
  const source = toModelSource(model, '1', 'cpu');
  const { usableCores: cores } = await probeMachine();
  const measureS = quick ? 0.1 : 0.5;
  const common = { ...options, cores, measureS, warmUpS: measureS / 2 };
  const full = await profileModel(source, { ...common, exhaustive: true, repeats: rounds });
  const found = await profileModel(source, { ...common, repeats: rounds });
  const [recommended, best] = [found.recommendation.point, fastest(full.points)];
  log(`profile ${name}: recommended ${textOf(recommended)}, best of all ${textOf(best)}`);

  const only = (setting: Setting) =>
    profileModel(source, { ...common, measureS: 2 * measureS, only: [setting] }).then(
      ({ points }) => (points[0] as SweepPoint).rowsPerS,
    );
  const measured = { recommended: [] as number[], best: [] as number[] };
  for (let turn = 0; turn < (quick ? 1 : 5); turn++) {
    measured.recommended.push(await only(recommended));
    measured.best.push(
      isSame(recommended, best) ? (measured.recommended.at(-1) as number) : await only(best),
    );
  }
  const [ours, theirs] = [median(measured.recommended), median(measured.best)];
  return {
    recommended: settingOf(recommended),
    best: settingOf(best),
    recommended_rows_per_s: round(ours),
    best_rows_per_s: round(theirs),
    ratio: round(ours / theirs, 3),
    measurements: found.measurements,
    full_measurements: full.measurements,
  };
}

function fastest(points: readonly SweepPoint[]): SweepPoint {
  return points.reduce((best, point) => (point.rowsPerS > best.rowsPerS ? point : best));
}

function isSame(a: Setting, b: Setting): boolean {
  return textOf(a) === textOf(b);
}

function settingOf({ batch, instances, threads }: Setting): Setting {
  return { batch, instances, threads };
}

export function textOf({ batch, instances, threads }: Setting): string {
  return `batch ${batch}, ${instances} × ${threads}`;
}
