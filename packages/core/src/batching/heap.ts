/**
 * A binary heap whose items may go stale where they lie: they are thrown away when they come to the top, and all at
 * once when the heap has doubled since it was last cleared, so that both cost O(log n) an item over time.
 */

const SMALLEST_CLEARING = 64;

export interface HeapOptions<Item> {
  /** Negative: `a` comes first. */
  compare(a: Item, b: Item): number;
  /** True: the item counts no more, and may be thrown away; what counts again is pushed again. */
  isStale(item: Item): boolean;
}

export class Heap<Item> {
  readonly #options: HeapOptions<Item>;
  #items: Item[] = [];
  #clearAt = SMALLEST_CLEARING;

  constructor(options: HeapOptions<Item>) {
    this.#options = options;
  }

  /** Items held, stale ones among them. */
  get size(): number {
    return this.#items.length;
  }

  push(item: Item): void {
    if (this.#items.length >= this.#clearAt) this.#clearStale();
    this.#items.push(item);
    this.#rise(this.#items.length - 1);
  }

  /** The first that is not stale. */
  peek(): Item | undefined {
    while (this.#items.length > 0) {
      const top = this.#items[0] as Item;
      if (!this.#options.isStale(top)) return top;
      this.#removeTop();
    }
    return undefined;
  }

  /** Takes the first that is not stale. */
  pop(): Item | undefined {
    const top = this.peek();
    if (top !== undefined) this.#removeTop();
    return top;
  }

  #removeTop(): void {
    const last = this.#items.pop() as Item;
    if (this.#items.length === 0) return;
    this.#items[0] = last;
    this.#sink(0);
  }

  #clearStale(): void {
    this.#items = this.#items.filter((item) => !this.#options.isStale(item));
    for (let at = (this.#items.length >> 1) - 1; at >= 0; at--) this.#sink(at);
    this.#clearAt = Math.max(SMALLEST_CLEARING, 2 * this.#items.length);
  }

  #rise(from: number): void {
    const items = this.#items;
    const item = items[from] as Item;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#options.compare(item, items[parent] as Item) >= 0) break;
      items[at] = items[parent] as Item;
      at = parent;
    }
    items[at] = item;
  }

  #sink(from: number): void {
    const items = this.#items;
    const item = items[from] as Item;
    let at = from;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= items.length) break;
      const right = child + 1;
      if (right < items.length && this.#options.compare(items[right] as Item, items[child] as Item) < 0)
        child = right;
      if (this.#options.compare(items[child] as Item, item) >= 0) break;
      items[at] = items[child] as Item;
      at = child;
    }
    items[at] = item;
  }
}
