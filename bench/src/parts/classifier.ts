/** drain, live and images: the text-direction classifier, as 110 KB tensors and as encoded images. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { PixelKwargs } from '@remuda/core/harness/image-input';
import type { RawModel, RawSideOptions } from '../raw/raw-side.js';
import { modelFile, ROOT } from '../rig/bench-models.js';
import { measureBacklog, measureLive, type PartContext, type Workload } from './part.js';
import { compareThroughput, type ThroughputFigures } from './throughput.js';

/** 110,592 bytes. */
export const CLASSIFIER_ROW = [1, 3, 48, 192];
const BATCHES = [1, 4, 8, 16, 32];

/** As models/text-direction/model.yaml has them, and text-recognition's likewise. */
export const PIXELS: PixelKwargs = {
  height: 48,
  channels: 'bgr',
  background: '#ffffff',
  interpolation: 'linear',
  scale: 1 / 255,
  mean: [0.5, 0.5, 0.5],
  std: [0.5, 0.5, 0.5],
  pad_value: 0,
};

export function drain(context: PartContext): Promise<ThroughputFigures> {
  const workload = tensorWorkload(context.quick ? 1_500 : 6_000);
  return compareThroughput(
    {
      name: 'drain',
      models: { real: { 'text-direction-tensor': {} } },
      raw: rawTensors(context),
      remuda: (rig) => measureBacklog(rig, context.ledger, workload),
    },
    context,
  );
}

export function live(context: PartContext): Promise<ThroughputFigures> {
  const workload = tensorWorkload(context.quick ? 1_500 : 6_000);
  return compareThroughput(
    {
      name: 'live',
      models: { real: { 'text-direction-tensor': {} } },
      raw: rawTensors(context),
      remuda: (rig) => measureLive(rig, context.ledger, workload),
    },
    context,
  );
}

export function images(context: PartContext): Promise<ThroughputFigures> {
  const files = sampleImages();
  const workload: Workload = {
    model: 'text-direction',
    body: { kind: 'images', files },
    count: context.quick ? 1_000 : 4_000,
  };
  const model: RawModel = {
    kind: 'images',
    modelPath: modelFile('text-direction'),
    files,
    pixels: PIXELS,
    width: 192,
  };
  return compareThroughput(
    {
      name: 'images',
      models: { real: { 'text-direction': {} } },
      raw: rawSide(model, context),
      remuda: (rig) => measureBacklog(rig, context.ledger, workload),
    },
    context,
  );
}

export function sampleImages(): string[] {
  const folder = join(ROOT, 'samples/text-lines');
  return readdirSync(folder)
    .filter((name) => name.endsWith('.png'))
    .sort()
    .map((name) => join(folder, name));
}

function tensorWorkload(count: number): Workload {
  return { model: 'text-direction-tensor', body: { kind: 'tensor', rowShape: CLASSIFIER_ROW }, count };
}

function rawTensors(context: PartContext): RawSideOptions {
  return rawSide(
    { kind: 'tensor', modelPath: modelFile('text-direction-tensor'), rowShape: CLASSIFIER_ROW },
    context,
  );
}

function rawSide(model: RawModel, { quick }: PartContext): RawSideOptions {
  return {
    model,
    batches: BATCHES,
    threads: [1, 2],
    sweepSeconds: quick ? 0.5 : 1.5,
    roundSeconds: quick ? 1 : 4,
    parallelBatches: [1, 8],
  };
}
