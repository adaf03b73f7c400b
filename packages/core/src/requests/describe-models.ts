/** Models as GET /v1/models shows them: the catalogue's entry, who has it loaded, and its queues. */
import type { DeviceClass, ModelDetail, ModelSummary } from '@remuda/schemas';
import { allowedClasses } from '../devices/affinity-rules.js';
import type { FleetView } from '../fleet/fleet-view.js';
import type { JobQueues } from '../queue/job-queue.js';
import { LANES, type Partition } from '../queue/partitions.js';
import type { Catalogue, CatalogueEntry } from './catalogue.js';
import type { StoreGuard } from './store-guard.js';

export interface DescribeDeps {
  catalogue: Catalogue;
  fleet: Pick<FleetView, 'loadedBy' | 'liveClasses'>;
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
  const signature = await deps.catalogue.signatureOf(name).catch(() => null);
  const summary = await deps.guard.run(() => summaryOf(entry, deps));
  return { ...summary, config: deps.catalogue.configOf(entry), signature };
}

async function summaryOf(entry: CatalogueEntry, deps: DescribeDeps): Promise<ModelSummary> {
  const { catalogue, fleet } = deps;
  const config = catalogue.configOf(entry);
  const ready = fleet.loadedBy(entry.name).filter(({ loaded }) => loaded.state === 'ready');
  return {
    name: entry.name,
    description: config?.description ?? '',
    labels: config?.labels ?? {},
    versions: entry.versions,
    default_version: entry.defaultVersion,
    workers: new Set(ready.map(({ worker }) => worker.worker_id)).size,
    queues: await Promise.all(
      partitionsOf(entry, deps).map((partition) => queueState(partition, deps.queues)),
    ),
    problems: catalogue.problemsOf(entry),
  };
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
