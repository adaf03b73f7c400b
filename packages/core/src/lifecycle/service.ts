/** The life of every long-lived thing: start fails loudly, stop is safe to call twice and gives up by itself. */
export interface Service {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts services in order; stops those that were started in reverse order, also when a start fails. */
export class ServiceGroup implements Service {
  readonly #services: readonly Service[];
  readonly #started: Service[] = [];
  #stopping: Promise<void> | undefined;

  constructor(
    readonly name: string,
    services: readonly Service[],
    private readonly onStopError: (service: string, error: unknown) => void,
  ) {
    this.#services = services;
  }

  async start(): Promise<void> {
    for (const service of this.#services) {
      try {
        await service.start();
        this.#started.push(service);
      } catch (error) {
        await this.stop();
        throw new Error(`${service.name} did not start: ${error instanceof Error ? error.message : error}`, {
          cause: error,
        });
      }
    }
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stopAll();
    return this.#stopping;
  }

  async #stopAll(): Promise<void> {
    for (const service of [...this.#started].reverse()) {
      try {
        await service.stop();
      } catch (error) {
        this.onStopError(service.name, error);
      }
    }
  }
}
