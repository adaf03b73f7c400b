/** A promise and what settles it. A rejection that nobody awaits is no fault. */
export class Deferred<T> {
  readonly promise: Promise<T>;
  settled = false;
  #resolve: (value: T) => void = () => {};
  #reject: (error: Error) => void = () => {};

  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.promise.catch(() => {});
  }

  resolve(value: T): void {
    this.settled = true;
    this.#resolve(value);
  }

  reject(error: Error): void {
    this.settled = true;
    this.#reject(error);
  }
}
