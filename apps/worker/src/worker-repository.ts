/**
 * Every model that this worker could serve, wherever its files lie: in the folder of the repository, or fetched from
 * the source that its desired state names. A model with a source comes from there alone.
 */
import type { RepositoryModel } from '@remuda/core/repository/manifests';
import { RepositoryWatch } from '@remuda/core/repository/repository-watch';
import type { ModelDeployment } from '@remuda/schemas';
import type { FetchedModels } from './fetched-models.js';

export class WorkerRepository {
  readonly #watch: RepositoryWatch;
  readonly #fetched: FetchedModels;

  constructor(folder: string, fetched: FetchedModels) {
    this.#watch = new RepositoryWatch(folder);
    this.#fetched = fetched;
  }

  /** By name. @throws RemudaError where the folder cannot be read */
  async look(
    deployments: ReadonlyMap<string, ModelDeployment>,
    isWanted: (model: string) => boolean,
  ): Promise<ReadonlyMap<string, RepositoryModel>> {
    const models = new Map([...(await this.#watch.look())].filter(([name]) => isWanted(name)));
    for (const { model, source, registered } of deployments.values()) {
      if (source === null || !registered || !isWanted(model)) continue;
      models.set(model, await this.#fetched.look(model, source));
    }
    return models;
  }
}
