/**
 * A hash in Redis whose fields hold JSON, for who reads it often: a text that has not changed is not parsed again and
 * gives the same object, by which others see at a glance that there is no news.
 */
export class ParsedTexts<Value extends object> {
  readonly #parse: (text: string) => Value;
  #known = new Map<string, { text: string; value: Value }>();

  /** @param parse may throw; then nothing is taken in */
  constructor(parse: (text: string) => Value) {
    this.#parse = parse;
  }

  /** By field. Fields that are gone are forgotten. */
  of(texts: Readonly<Record<string, string>>): Map<string, Value> {
    this.#known = new Map(
      Object.entries(texts).map(([field, text]) => {
        const before = this.#known.get(field);
        return [field, before?.text === text ? before : { text, value: this.#parse(text) }];
      }),
    );
    return new Map([...this.#known].map(([field, { value }]) => [field, value]));
  }
}
