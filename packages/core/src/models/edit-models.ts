/**
 * The use cases of the admin API: each looks at what there is, edits the desired state (edits.ts) with who and what for
 * the history, and says what is worth knowing. Workers and the steward do the rest.
 */
import {
  type AdminModel,
  type AdminModelSummary,
  DEFAULT_REF,
  type ModelDeployment,
  type ModelEdited,
  type ModelEvent,
  type ModelPatch,
  type ModelRegistration,
  refuse,
  type ShadowRule,
  type TrafficSplit,
} from '@remuda/schemas';
import type { Catalogue } from '../requests/catalogue.js';
import type { CatalogueEntry } from '../requests/catalogue-entry.js';
import type { StoreGuard } from '../requests/store-guard.js';
import { versionDifferences } from './compatible-signatures.js';
import type { DeploymentView } from './deployment-view.js';
import { type AdminViewDeps, describeAdminModel, summariseAdminModels } from './describe-admin-models.js';
import * as edits from './edits.js';
import { givenSource, shownSource } from './given-source.js';
import { resolveRef, versionsOfPolicy } from './target-refs.js';
import { mayLoad } from './version-availability.js';

export interface ModelAdminDeps extends AdminViewDeps {
  catalogue: AdminViewDeps['catalogue'] &
    Pick<Catalogue, 'entry' | 'entries' | 'at' | 'known' | 'signatureOf'>;
  deployments: AdminViewDeps['deployments'] & Pick<DeploymentView, 'store' | 'refresh'>;
  guard: StoreGuard;
}

/** What an edit is called in the history. */
interface Deed {
  who: string;
  what: string;
  detail?: Record<string, unknown>;
}

/**
 * All edits throw RemudaError (model_not_found, version_not_found, alias_not_found, store_unavailable, …) or
 * InvalidInputError with the place in the body; then nothing was changed.
 */
export class ModelAdmin {
  readonly #deps: ModelAdminDeps;

  constructor(deps: ModelAdminDeps) {
    this.#deps = deps;
  }

  list(): AdminModelSummary[] {
    return summariseAdminModels(this.#deps);
  }

  describe(model: string): Promise<AdminModel> {
    return this.#deps.guard.run(() => describeAdminModel(model, this.#deps));
  }

  /** Newest first. */
  async history(model: string, limit: number): Promise<ModelEvent[]> {
    await this.#deps.catalogue.anyEntry(model);
    return this.#deps.guard.run(() => this.#deps.deployments.store.history(model, limit));
  }

  async register(registration: ModelRegistration, who: string): Promise<ModelEdited> {
    const { name, source: given, ...rest } = registration;
    const source = given === undefined ? undefined : givenSource(given);
    const entry = await this.#deps.catalogue.anyEntry(name).catch(() => undefined);
    const known =
      entry !== undefined && (entry.local !== null || this.#deps.deployments.of(name).source !== null);
    if (source === undefined && !known) {
      refuse(
        ['source'],
        `where the files of ${name} come from, since no repository here has it`,
        'nothing',
        'invalid_request',
      );
    }
    const detail = { ...rest, ...(source && { source: shownSource(source) }) };
    return this.#edit(name, { who, what: 'registered', detail }, edits.registered(registration, source));
  }

  async update(model: string, patch: ModelPatch, who: string): Promise<ModelEdited> {
    const versions = await this.#versions(model);
    const edited = await this.#edit(
      model,
      { who, what: 'changed', detail: patch },
      edits.patched(patch),
      keptNone(patch.version_policy, versions, model),
    );
    return { ...edited, notices: [...edited.notices, ...this.#offNotices(edited.deployment, versions)] };
  }

  async unregister(model: string, who: string): Promise<ModelEdited> {
    await this.#deps.catalogue.entry(model);
    const orphans = this.#deps.catalogue
      .entries()
      .filter((entry) => this.#deps.catalogue.configOf(entry)?.fallback_model === model);
    return this.#edit(model, { who, what: 'unregistered' }, edits.takenOut, [
      ...orphans.map(({ name }) => `${name} falls back to ${model}, which cannot answer for it any more`),
    ]);
  }

  /** @param version number or alias; undefined: the newest */
  async load(model: string, version: string | undefined, who: string): Promise<ModelEdited> {
    const versions = await this.#versions(model, version);
    return this.#edit(model, { who, what: 'loaded', detail: { version } }, edits.loaded(version, versions));
  }

  /** @param version number or alias; undefined: all */
  async unload(model: string, version: string | undefined, who: string): Promise<ModelEdited> {
    const versions = await this.#versions(model, version);
    const { deployment } = await this.#edit(
      model,
      { who, what: 'unloaded', detail: { version } },
      edits.unloaded(version, versions),
    );
    return { deployment, notices: this.#offNotices(deployment, versions) };
  }

  async setAlias(model: string, alias: string, version: string, who: string): Promise<ModelEdited> {
    const versions = await this.#versions(model, version);
    const deed = { who, what: 'alias_set', detail: { alias, version } };
    return this.#edit(model, deed, edits.aliasSet(alias, version, versions));
  }

  async removeAlias(model: string, alias: string, who: string): Promise<ModelEdited> {
    await this.#deps.catalogue.entry(model);
    return this.#edit(model, { who, what: 'alias_removed', detail: { alias } }, edits.aliasRemoved(alias));
  }

  async setSplit(model: string, split: TrafficSplit, who: string): Promise<ModelEdited> {
    const versions = await this.#versions(model);
    const change = edits.splitSet(split, versions);
    const next = await this.#tried(model, change);
    const notices = await this.#compare(next, Object.keys(split.weights), split.stable, (ref) => [
      'weights',
      ref,
    ]);
    return this.#edit(model, { who, what: 'split_set', detail: { ...split } }, change, notices);
  }

  async removeSplit(model: string, who: string): Promise<ModelEdited> {
    await this.#deps.catalogue.entry(model);
    return this.#edit(model, { who, what: 'split_removed' }, edits.splitSet(null, []));
  }

  async setShadow(model: string, shadow: ShadowRule, who: string): Promise<ModelEdited> {
    const versions = await this.#versions(model);
    const change = edits.shadowSet(shadow, versions);
    const next = await this.#tried(model, change);
    const served = this.#deps.resolver.defaultVersion(model);
    const notices =
      served === null ? [] : await this.#compare(next, [shadow.version], served, () => ['version']);
    if (resolveRef(shadow.version, next) === served) {
      notices.push(`version ${served} is also the one that answers: nothing will differ`);
    }
    return this.#edit(model, { who, what: 'shadow_set', detail: { ...shadow } }, change, notices);
  }

  async removeShadow(model: string, who: string): Promise<ModelEdited> {
    await this.#deps.catalogue.entry(model);
    return this.#edit(model, { who, what: 'shadow_removed' }, edits.shadowSet(null, []));
  }

  /** @param instances null: as model.yaml says */
  async scale(model: string, instances: number | null, who: string): Promise<ModelEdited> {
    await this.#deps.catalogue.entry(model);
    return this.#edit(model, { who, what: 'scaled', detail: { instances } }, edits.scaled(instances));
  }

  /** Where an edit has left nothing that may serve. */
  #offNotices(deployment: ModelDeployment, versions: readonly string[]): string[] {
    const { catalogue } = this.#deps;
    const entry = catalogue.at(deployment.model);
    const mode = (entry && catalogue.configOf(entry)?.load_mode) ?? 'eager';
    if (versions.some((version) => mayLoad(version, deployment, mode))) return [];
    return [
      `no version of ${deployment.model} may be loaded now: requests for it are refused, unless its model.yaml names a fallback_model`,
    ];
  }

  async #edit(
    model: string,
    { who, what, detail = {} }: Deed,
    change: edits.Change,
    notices: string[] = [],
  ): Promise<ModelEdited> {
    const { guard, deployments } = this.#deps;
    const deployment = await this.#guarded((refused) =>
      guard.run(() => deployments.store.edit({ model, who, what, detail, change: refused(change) })),
    );
    // So that who asks this server next sees what was just done here.
    await guard.run(() => deployments.refresh()).catch(() => {});
    return { deployment, notices };
  }

  /** What the edit would make of the state there is; throws as it would. */
  #tried(model: string, change: edits.Change): Promise<ModelDeployment> {
    const { guard, deployments } = this.#deps;
    return this.#guarded(async (refused) =>
      refused(change)(await guard.run(() => deployments.store.get(model))),
    );
  }

  /** The guard takes whatever is thrown for trouble with Redis; a refusal of ours is thrown as it is. */
  async #guarded<T>(work: (refused: (change: edits.Change) => edits.Change) => Promise<T>): Promise<T> {
    let refusal: unknown;
    const refused =
      (change: edits.Change): edits.Change =>
      (current) => {
        try {
          return change(current);
        } catch (error) {
          refusal = error;
          throw error;
        }
      };
    return work(refused).catch((error: unknown) => {
      throw refusal ?? error;
    });
  }

  /** Versions whose files are all there, as far as is known here. @param wanted looked for once more where it is new */
  async #versions(model: string, wanted?: string): Promise<string[]> {
    const number = wanted !== undefined && /^\d/.test(wanted) ? wanted : undefined;
    const entry: CatalogueEntry = await this.#deps.catalogue.entry(model, number);
    const incomplete =
      entry.local?.versions.filter(({ complete }) => !complete).map(({ version }) => version) ?? [];
    return entry.versions.filter((version) => !incomplete.includes(version));
  }

  /** Versions that share requests must take and give the same. Returns what could not be compared. */
  async #compare(
    deployment: ModelDeployment,
    refs: readonly string[],
    stable: string,
    pathOf: (ref: string) => PropertyKey[],
  ): Promise<string[]> {
    const notices: string[] = [];
    const base = await this.#signature(deployment, stable);
    for (const ref of refs.filter((one) => one !== stable && one !== DEFAULT_REF)) {
      const other = await this.#signature(deployment, ref);
      if (!base || !other) {
        notices.push(
          `the signature of ${other ? stable : ref} is not known yet: ${stable} and ${ref} were not compared`,
        );
        continue;
      }
      const differences = versionDifferences(base, other);
      if (differences.length > 0) {
        const expected = `a version that takes and gives what ${stable} does`;
        refuse(pathOf(ref), expected, `"${ref}": ${differences.join('; ')}`, 'invalid_request');
      }
    }
    return notices;
  }

  async #signature(deployment: ModelDeployment, ref: string) {
    const version = resolveRef(ref, deployment);
    if (version === undefined) return undefined;
    return this.#deps.catalogue.signatureOf(deployment.model, version).catch(() => undefined);
  }
}

function keptNone(
  policy: ModelPatch['version_policy'],
  versions: readonly string[],
  model: string,
): string[] {
  if (policy == null || versionsOfPolicy(policy, versions).length > 0) return [];
  return [
    `the version_policy keeps none of the versions of ${model} that are there: ${versions.join(', ') || 'none'}`,
  ];
}
