/**
 * The one place that knows DuckDB: how it is set up, and how its vectors give their memory. It runs beside the native
 * runtime of a model, so it has one thread and a bounded memory; it may load no extension and reach no network.
 */
import {
  type DuckDBArrayType,
  type DuckDBConnection,
  type DuckDBDataChunk,
  DuckDBInstance,
  type DuckDBListType,
  DuckDBListVector,
  type DuckDBPreparedStatement,
  type DuckDBResult,
  type DuckDBType,
  DuckDBTypeId,
  type DuckDBVector,
} from '@duckdb/node-api';
import type { NumericValues } from '../../../columns.js';

export type {
  DuckDBArrayType as ArrayType,
  DuckDBConnection as Connection,
  DuckDBDataChunk as DataChunk,
  DuckDBListType as ListType,
  DuckDBPreparedStatement as Statement,
  DuckDBResult as Result,
  DuckDBType as Type,
  DuckDBVector as Vector,
};
export { DuckDBListVector as ListVector, DuckDBTypeId as TypeId };

const SETTINGS: Readonly<Record<string, string>> = {
  threads: '1',
  // Its own, not that of the process: pages of one row group and what they unpack to.
  memory_limit: '512MB',
  temp_directory: '',
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
  allow_community_extensions: 'false',
  // The pages of a file are in the cache of the system already.
  enable_external_file_cache: 'false',
  lock_configuration: 'true',
};

let instance: Promise<DuckDBInstance> | undefined;

/** A connection of its own: a result that is still open ends where another statement begins on its connection. */
export async function connect(): Promise<DuckDBConnection> {
  instance ??= DuckDBInstance.create(':memory:', { ...SETTINGS });
  return (await instance).connect();
}

/** A path as SQL text. Brackets keep characters of globs from being taken for one. */
export function pathLiteral(path: string): string {
  return textLiteral(path.replace(/[*?[]/g, '[$&]'));
}

export function textLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** What a vector holds inside; the public methods would make an object of every value. */
interface Inside {
  items?: NumericValues;
  dataView?: DataView;
  validity: { data: BigUint64Array | null; offset: number };
}

/** The numbers of a vector as they lie; those of nulls are of no meaning. */
export function numbersOf(vector: DuckDBVector): NumericValues {
  const { items, dataView } = vector as unknown as Inside;
  if (items) return items;
  // Truth values lie a byte each.
  if (dataView) return new Uint8Array(dataView.buffer, dataView.byteOffset, dataView.byteLength);
  throw new Error(`a vector of ${vector.type} holds no numbers`);
}

/** A bit for each value, lowest first, 0 where there is none; null: there are no nulls. */
export function validityOf(vector: DuckDBVector): { bits: Uint8Array; offset: number } | null {
  const { data, offset } = (vector as unknown as Inside).validity;
  if (!data) return null;
  return { bits: new Uint8Array(data.buffer, data.byteOffset, data.byteLength), offset };
}
