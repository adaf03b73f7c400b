/** Reads the rows of chunks in a runner, whatever their format. Each reader is made when it is first needed. */
import type { BulkFormat } from '@remuda/schemas';
import type { RowBlock } from '../columns.js';
import type { RowReader, RowsWanted } from './bulk-input.js';

type Kind = 'columnar' | 'text' | 'images';

export function createRowReader(): RowReader {
  const readers = new Map<Kind, Promise<RowReader>>();
  const readerOf = (format: BulkFormat): Promise<RowReader> => {
    const kind = kindOf(format);
    const reader = readers.get(kind) ?? MAKERS[kind]();
    readers.set(kind, reader);
    return reader;
  };
  return {
    read: async (wanted: RowsWanted, payload: Uint8Array | null): Promise<RowBlock> =>
      (await readerOf(wanted.read.format)).read(wanted, payload),
    close: async () => {
      const made = await Promise.all(readers.values());
      readers.clear();
      await Promise.all(made.map((reader) => reader.close()));
    },
  };
}

function kindOf(format: BulkFormat): Kind {
  if (format === 'parquet' || format === 'arrow') return 'columnar';
  return format === 'images' || format === 'list' ? 'images' : 'text';
}

const MAKERS: Record<Kind, () => Promise<RowReader>> = {
  columnar: async () => (await import('./columnar/columnar-reader.js')).createColumnarReader(),
  text: async () => (await import('./text/text-reader.js')).createTextReader(),
  images: async () => (await import('./images/image-reader.js')).createImageReader(),
};
