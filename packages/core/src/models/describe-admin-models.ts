/** Models as the admin API shows them: desired state, what is served, what each worker has, what is under way. */
import type { AdminModel, AdminModelSummary, AdminVersion, VersionCopy } from '@remuda/schemas';
import type { FleetView } from '../fleet/fleet-view.js';
import type { Clock } from '../lifecycle/clock.js';
import type { Catalogue } from '../requests/catalogue.js';
import type { CatalogueEntry } from '../requests/catalogue-entry.js';
import { countStates, problemsOf } from '../requests/describe-models.js';
import { type ConvergenceFacts, convergenceOf, plannedVersions } from './convergence.js';
import type { DeploymentView } from './deployment-view.js';
import { toldLoadMode } from './fleet-models.js';
import { shownSource } from './given-source.js';
import type { ModelResolver } from './model-resolver.js';

/** What the fleet has measured about a split and a shadow; null: nothing yet. */
export interface ModelReports {
  split: Record<string, unknown> | null;
  shadow: Record<string, unknown> | null;
}

export interface AdminViewDeps {
  catalogue: Pick<Catalogue, 'allEntries' | 'anyEntry' | 'configOf' | 'problemsOf'>;
  deployments: Pick<DeploymentView, 'of' | 'serving'>;
  resolver: Pick<ModelResolver, 'defaultVersion' | 'fallbackOf' | 'fallbackProblem'>;
  fleet: Pick<FleetView, 'loadedBy' | 'workers'>;
  clock: Clock;
  /** Where the fleet keeps its measurements. */
  reports?(model: string): Promise<ModelReports>;
}

type Copies = ConvergenceFacts['copies'];

export function summariseAdminModels(deps: AdminViewDeps): AdminModelSummary[] {
  return deps.catalogue.allEntries().map((entry) => summaryOf(entry, deps));
}

/** @throws RemudaError model_not_found */
export async function describeAdminModel(name: string, deps: AdminViewDeps): Promise<AdminModel> {
  const entry = await deps.catalogue.anyEntry(name);
  const facts = factsOf(entry, deps);
  const { deployment, serving, config } = facts;
  const { split = null, shadow = null } = (await deps.reports?.(name)) ?? {};
  return {
    model: name,
    in_repository: entry.local !== null,
    deployment,
    serving: serving ?? null,
    load_mode: deployment.load_mode ?? config.load_mode,
    version_policy: deployment.version_policy ?? config.version_policy,
    default_version: deps.resolver.defaultVersion(name),
    fallback: deps.resolver.fallbackOf(name),
    versions: versionsOf(entry, facts),
    convergence: convergenceOf(facts),
    split_report: deployment.split ? split : null,
    shadow_report: deployment.shadow ? shadow : null,
    problems: problemsOf(entry, deps),
  };
}

function summaryOf(entry: CatalogueEntry, deps: AdminViewDeps): AdminModelSummary {
  const facts = factsOf(entry, deps);
  const { deployment, config, copies } = facts;
  return {
    model: entry.name,
    registered: deployment.registered,
    source: deployment.source && shownSource(deployment.source),
    revision: deployment.revision,
    load_mode: deployment.load_mode ?? config.load_mode,
    versions: entry.versions,
    default_version: deps.resolver.defaultVersion(entry.name),
    aliases: deployment.aliases,
    split: deployment.split?.weights ?? null,
    shadow: deployment.shadow?.version ?? null,
    states: countStates(copies.map(({ loaded }) => loaded.state)),
    converged: convergenceOf(facts).done,
    problems: problemsOf(entry, deps),
  };
}

function factsOf(
  entry: CatalogueEntry,
  { catalogue, deployments, fleet, clock }: AdminViewDeps,
): ConvergenceFacts {
  const copies = fleet.loadedBy(entry.name);
  const { load_mode = toldLoadMode(copies), version_policy = 'latest' } = catalogue.configOf(entry) ?? {};
  const incomplete =
    entry.local?.versions.filter(({ complete }) => !complete).map(({ version }) => version) ?? [];
  return {
    config: { load_mode, version_policy },
    deployment: deployments.of(entry.name),
    serving: deployments.serving(entry.name),
    versions: entry.versions.filter((version) => !incomplete.includes(version)),
    copies,
    workers: fleet.workers,
    now: clock.now(),
  };
}

function versionsOf(entry: CatalogueEntry, facts: ConvergenceFacts): AdminVersion[] {
  const { deployment, serving } = facts;
  const plan = plannedVersions(facts);
  return entry.versions.map((version) => {
    const copies = facts.copies.filter(({ loaded }) => loaded.version === version);
    const planned = plan.find((one) => one.version === version);
    return {
      version,
      digest: digestOf(entry, version, copies),
      aliases: Object.keys(deployment.aliases).filter((alias) => deployment.aliases[alias] === version),
      served_as: Object.keys(serving?.refs ?? {}).filter((ref) => serving?.refs[ref]?.version === version),
      wanted: planned?.want ?? 'off',
      wanted_reason: planned?.reason ?? 'its files are not complete',
      copies: copies.map(copyOf),
    };
  });
}

/** As the workers have it, since they run the requests. */
function digestOf({ local, published }: CatalogueEntry, version: string, copies: Copies): string | null {
  const ready = copies.find(({ loaded }) => loaded.state === 'ready');
  return (
    ready?.loaded.digest ??
    local?.versions.find((candidate) => candidate.version === version)?.digest ??
    published.get(version)?.signature.digest ??
    (copies[0]?.loaded.digest || null)
  );
}

function copyOf({ worker, loaded }: Copies[number]): VersionCopy {
  const { device, digest, provider, state, reason, instances, memory_bytes, last_used_at } = loaded;
  const { backlog_rows, breaker } = loaded;
  const facts = { device, digest, provider, state, reason, instances, memory_bytes, last_used_at };
  return { worker_id: worker.worker_id, ...facts, backlog_rows, breaker };
}
