/** The gate of the model `gated`: while it is closed, no run of that model ends, on no worker. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export class Gate {
  readonly #file: string;

  /** @param models the folder that testModels() made */
  constructor(models: string) {
    this.#file = join(models, 'gated/closed');
  }

  close(): void {
    writeFileSync(this.#file, '');
  }

  open(): void {
    rmSync(this.#file, { force: true });
  }

  /** Closed while `during` goes on, and open again however that ends. */
  async closedWhile(during: () => Promise<void>): Promise<void> {
    this.close();
    try {
      await during();
    } finally {
      this.open();
    }
  }
}
