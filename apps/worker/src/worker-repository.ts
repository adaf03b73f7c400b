/**
 * Every model that this worker could serve, wherever its files lie: in the folder of the repository, or fetched from
 * the source that its desired state names. A model with a source comes from there alone.
 */
import type { RepositoryModel } from '@remuda/core/repository/manifests';
import { RepositoryWatch } from '@remuda/core/repository/repository-watch';
import type { ModelDeployment } from '@remuda/schemas';

/** Brings the files of a model here; undefined while they are on their way. */
export interface FetchedModels {
  modelOf(model: string, source: Record<string, unknown>): Promise<RepositoryModel | undefined>;
}

export class WorkerRepository {
  readonly #watch: RepositoryWatch;
  readonly #fetched: FetchedModels | undefined;

  constructor(folder: string, fetched?: FetchedModels) {
    this.#watch = new RepositoryWatch(folder);
    this.#fetched = fetched;
  }

  /** By name. @throws RemudaError where the folder cannot be read */
  async look(
    deployments: ReadonlyMap<string, ModelDeployment>,
  ): Promise<ReadonlyMap<string, RepositoryModel>> {
    const models = new Map(await this.#watch.look());
    for (const { model, source } of deployments.values()) {
      if (source === null || !this.#fetched) continue;
      const fetched = await this.#fetched.modelOf(model, source);
      if (fetched) models.set(model, fetched);
      else models.delete(model);
    }
    return models;
  }
}
