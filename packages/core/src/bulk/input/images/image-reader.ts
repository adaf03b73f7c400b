/** Loads the images of a piece in a runner: some at once, each within its limits, each failing alone. */
import type { ItemError } from '@remuda/schemas';
import { itemError, RemudaError } from '../../../errors.js';
import type { ReadSettings } from '../../chunk.js';
import type { Column, RowBlock } from '../../columns.js';
import type { RowReader, RowsWanted } from '../bulk-input.js';
import { eachRecord, placeOf, type TextRecord } from '../text/each-record.js';
import { LineTexts } from '../text/json-lines.js';
import { LineScanner } from '../text/record-scanner.js';
import { Turns } from '../text/turns.js';
import { Nulls } from '../text/typed-column.js';
import { ImageFault } from './image-fault.js';
import { type ImageReference, parseReference } from './list-lines.js';
import { LocalImages } from './local-images.js';
import { RemoteImages } from './remote-images.js';

/** Transfers and reads under way at once, of a piece. */
const AT_ONCE = 16;

export function createImageReader(): RowReader {
  /** By settings: those of a job are the same for all its pieces. */
  const remotes = new Map<string, RemoteImages>();
  const remoteOf = ({ allowed, s3 }: ReadSettings): RemoteImages => {
    const key = JSON.stringify([allowed, s3]);
    const remote = remotes.get(key) ?? new RemoteImages({ allowed, s3 });
    remotes.set(key, remote);
    return remote;
  };
  return {
    async read(wanted, payload): Promise<RowBlock> {
      if (!payload) throw new RemudaError('source_unreadable', 'references of images came without a payload');
      const block = new ImageBlock(wanted);
      await block.load(Buffer.from(payload), remoteOf(wanted.read));
      return block.block();
    },
    async close(): Promise<void> {
      const all = [...remotes.values()];
      remotes.clear();
      await Promise.all(all.map((remote) => remote.close()));
    },
  };
}

class ImageBlock {
  readonly #wanted: RowsWanted;
  readonly #records: TextRecord[] = [];
  readonly #references: Array<ImageReference | null> = [];
  readonly #images: Array<Uint8Array | null> = [];
  readonly #failures = new Map<number, ItemError>();
  readonly #lines: string[] = [];

  constructor(wanted: RowsWanted) {
    this.#wanted = wanted;
  }

  async load(bytes: Buffer, remote: RemoteImages): Promise<void> {
    const { range } = this.#wanted;
    const texts = new LineTexts(bytes);
    const take = (record: TextRecord): void => this.#take(record, texts);
    await eachRecord(bytes, range.kind === 'payload' ? range : {}, new LineScanner(), take, new Turns());
    const { base = '/', roots = [base], closed } = this.#wanted.read;
    const local = new LocalImages(base, roots, closed);
    const rows = this.#references.entries();
    const work = async (): Promise<void> => {
      for (const [row, reference] of rows) {
        if (reference === null) continue;
        const { kind, text } = reference;
        try {
          this.#images[row] = await (kind === 'path' ? local.read(text) : remote.read(text, kind));
        } catch (error) {
          if (!(error instanceof ImageFault)) throw error;
          this.#fail(row, `${shownReference(reference)} ${error.message}`);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }

  block(): RowBlock {
    const { columns: names, read, firstRow } = this.#wanted;
    const columns = [
      this.#imageColumn(),
      this.#textColumn('custom_id', ({ customId }) => customId),
      this.#textColumn('path', ({ kind, text }) => (kind === 'path' ? text : null)),
      this.#textColumn('url', ({ kind, text }) => (kind === 'path' ? null : text)),
    ];
    return {
      rows: this.#references.length,
      columns: columns.filter(({ name }) => names === null || names.includes(name)),
      failures: this.#failures,
      ...(read.rejected && {
        rowNumbers: this.#references.map((reference, row) => reference?.row ?? firstRow + row),
      }),
      rawOf: (row) => this.#rawOf(row),
    };
  }

  #take(record: TextRecord, texts: LineTexts): void {
    const row = this.#records.push(record) - 1;
    const text = texts.text(record.from, record.to);
    const bad =
      texts.invalidAt(record.from, record.to) >= 0 ? 'is not valid UTF-8; save the list as UTF-8' : null;
    const found = record.fault ?? bad ?? parseReference(text);
    this.#lines.push(text);
    this.#references.push(typeof found === 'string' ? null : found);
    this.#images.push(null);
    if (typeof found === 'string') this.#fail(row, found);
  }

  #fail(row: number, what: string): void {
    const record = this.#records[row] as TextRecord;
    const place = placeOf(record, this.#wanted.firstRow + row);
    this.#failures.set(
      row,
      itemError('invalid_row', `${place} ${what}`, record.line === null ? {} : { line: record.line }),
    );
  }

  #imageColumn(): Column {
    const nulls = new Nulls(this.#images.length);
    for (const [row, image] of this.#images.entries()) if (image === null) nulls.add(row);
    return { name: 'image', type: 'bytes', values: this.#images, ...nulls.found };
  }

  #textColumn(name: string, textOf: (reference: ImageReference) => string | null): Column {
    const values = this.#references.map((reference) => reference && textOf(reference));
    const nulls = new Nulls(values.length);
    for (const [row, value] of values.entries()) if (value === null) nulls.add(row);
    return { name, type: 'string', values, ...nulls.found };
  }

  #rawOf(row: number): unknown {
    const reference = this.#references[row];
    if (!reference) return this.#lines[row] ?? null;
    const { customId, kind, text } = reference;
    return { ...(customId !== null && { custom_id: customId }), [kind === 'path' ? 'path' : 'url']: text };
  }
}

/** What signs an address is no business of a log. */
function shownReference({ text }: ImageReference): string {
  return text.replace(/\?.*$/, '?…').replace(/\/\/[^/]*@/, '//…@');
}
