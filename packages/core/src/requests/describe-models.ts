/** Models as GET /v1/models shows them: the catalogue's entry, who has it loaded, and its queues. */
import {
  DEFAULT_REF,
  type DeviceClass,
  type LoadState,
  type ModelDetail,
  type ModelSummary,
} from '@remuda/schemas';
import { allowedClasses } from '../devices/affinity-rules.js';
import { unmetRules } from '../devices/fits-device.js';
import type { FleetView } from '../fleet/fleet-view.js';
import type { DeploymentView } from '../models/deployment-view.js';
import { missingFilesProblem } from '../models/missing-files.js';
import type { ModelResolver } from '../models/model-resolver.js';
import { servedRef } from '../models/target-refs.js';
import type { JobQueues } from '../queue/job-queue.js';
import { LANES, type Partition } from '../queue/partitions.js';
import type { Catalogue } from './catalogue.js';
import type { CatalogueEntry } from './catalogue-entry.js';
import type { StoreGuard } from './store-guard.js';

export interface DescribeDeps {
  catalogue: Catalogue;
  fleet: Pick<FleetView, 'loadedBy' | 'liveClasses' | 'workers'>;
  deployments: Pick<DeploymentView, 'of' | 'serving'>;
  resolver: Pick<ModelResolver, 'defaultVersion' | 'fallbackProblem'>;
  queues: JobQueues;
  guard: StoreGuard;
}

export async function describeModels(deps: DescribeDeps): Promise<ModelSummary[]> {
  const entries = deps.catalogue.entries();
  return deps.guard.run(() => Promise.all(entries.map((entry) => summaryOf(entry, deps))));
}

/** @throws RemudaError model_not_found */
export async function describeModel(name: string, deps: DescribeDeps): Promise<ModelDetail> {
  const entry = await deps.catalogue.entry(name);
  // A model that cannot be read is described all the same: its problems say why.
  const version = deps.resolver.defaultVersion(name) ?? entry.defaultVersion;
  const signature =
    version === null ? null : await deps.catalogue.signatureOf(name, version).catch(() => null);
  const summary = await deps.guard.run(() => summaryOf(entry, deps));
  return { ...summary, config: deps.catalogue.configOf(entry), signature };
}

async function summaryOf(entry: CatalogueEntry, deps: DescribeDeps): Promise<ModelSummary> {
  const { catalogue, fleet, resolver } = deps;
  const { name } = entry;
  const config = catalogue.configOf(entry);
  const copies = fleet.loadedBy(name);
  const ready = copies.filter(({ loaded }) => loaded.state === 'ready');
  return {
    name,
    description: config?.description ?? '',
    labels: config?.labels ?? {},
    versions: entry.versions,
    default_version: resolver.defaultVersion(name),
    aliases: aliasesOf(name, deps),
    states: countStates(copies.map(({ loaded }) => loaded.state)),
    workers: new Set(ready.map(({ worker }) => worker.worker_id)).size,
    queues: await Promise.all(
      partitionsOf(entry, deps).map((partition) => queueState(partition, deps.queues)),
    ),
    problems: problemsOf(entry, deps),
  };
}

/**
 * What its files and workers say, that it would have no fallback where it should, rules that no device can meet, and
 * that nobody has its files.
 */
export function problemsOf(
  entry: CatalogueEntry,
  {
    catalogue,
    resolver,
    fleet,
    deployments,
  }: {
    catalogue: Pick<Catalogue, 'problemsOf' | 'configOf'>;
    resolver: Pick<ModelResolver, 'fallbackProblem'>;
    fleet: Pick<FleetView, 'workers'>;
    deployments: Pick<DeploymentView, 'of'>;
  },
): string[] {
  // The rules that are wanted now; what was loaded by other ones may still serve.
  const config = entry.local?.config ?? catalogue.configOf(entry);
  const fallback = resolver.fallbackProblem(entry.name);
  const missing = missingFilesProblem({
    model: entry.name,
    inRepository: entry.local !== null,
    deployment: deployments.of(entry.name),
    config,
    workers: fleet.workers,
  });
  return [
    ...catalogue.problemsOf(entry),
    ...(fallback === undefined ? [] : [fallback]),
    ...(config ? unmetRules(entry.name, config, fleet.workers) : []),
    ...(missing === undefined ? [] : [missing]),
  ];
}

/** How many there are of each state. */
export function countStates(states: readonly LoadState[]): Partial<Record<LoadState, number>> {
  const counts: Partial<Record<LoadState, number>> = {};
  for (const state of states) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
}

/** Where each alias leads at present. */
function aliasesOf(model: string, { deployments }: DescribeDeps): Record<string, string> {
  const deployment = deployments.of(model);
  const serving = deployments.serving(model);
  const names = Object.keys(deployment.aliases).filter((alias) => alias !== DEFAULT_REF);
  return Object.fromEntries(
    names.sort().map((alias) => [alias, servedRef(alias, deployment, serving) as string]),
  );
}

function partitionsOf(entry: CatalogueEntry, { catalogue, fleet }: DescribeDeps): Partition[] {
  const config = catalogue.configOf(entry);
  const allowed = config ? allowedClasses(config) : [];
  const classes = new Set<DeviceClass>([...allowed, ...fleet.liveClasses(entry.name)]);
  return [...classes].flatMap((deviceClass) =>
    LANES.map((lane) => ({ model: entry.name, deviceClass, lane })),
  );
}

async function queueState(partition: Partition, queues: JobQueues): Promise<ModelSummary['queues'][number]> {
  const { deviceClass: device_class, lane } = partition;
  return { device_class, lane, ...(await queues.of(partition).depth()) };
}
