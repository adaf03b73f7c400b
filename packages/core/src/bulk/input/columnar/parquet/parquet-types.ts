/**
 * DuckDB's types as columns: which are read as they are, which DuckDB turns into text or JSON on the way out, what a
 * person calls them. What has no sensible form is refused, but only where the column is wanted.
 */
import type { NumericType } from '../../../columns.js';
import { type ArrayType, type ListType, quoted, type Type, TypeId } from './duckdb.js';

/** How a column is made from its vectors. */
export type Form =
  | { kind: 'numbers'; type: NumericType }
  | { kind: 'strings' }
  | { kind: 'bytes' }
  /** JSON texts. */
  | { kind: 'json' }
  | { kind: 'list'; child: Form };

const NUMBERS = new Map<TypeId, NumericType>([
  [TypeId.BOOLEAN, 'bool'],
  [TypeId.TINYINT, 'int8'],
  [TypeId.SMALLINT, 'int16'],
  [TypeId.INTEGER, 'int32'],
  [TypeId.BIGINT, 'int64'],
  [TypeId.UTINYINT, 'uint8'],
  [TypeId.USMALLINT, 'uint16'],
  [TypeId.UINTEGER, 'uint32'],
  [TypeId.UBIGINT, 'uint64'],
  [TypeId.FLOAT, 'float32'],
  [TypeId.DOUBLE, 'float64'],
]);

/** Types whose text says all of them. */
const TEXTS = new Map<TypeId, string>([
  [TypeId.DECIMAL, 'decimal'],
  [TypeId.HUGEINT, 'int128'],
  [TypeId.UHUGEINT, 'uint128'],
  [TypeId.DATE, 'date'],
  [TypeId.TIME, 'time'],
  [TypeId.TIME_NS, 'time'],
  [TypeId.UUID, 'uuid'],
  [TypeId.ENUM, 'enum'],
]);

const TIMESTAMPS: ReadonlySet<TypeId> = new Set([
  TypeId.TIMESTAMP,
  TypeId.TIMESTAMP_S,
  TypeId.TIMESTAMP_MS,
  TypeId.TIMESTAMP_NS,
]);

const OBJECTS: ReadonlySet<TypeId> = new Set([TypeId.STRUCT, TypeId.MAP]);

/** "float32", "list<float32>", "decimal(10,2)", "timestamp"; what is unknown as DuckDB calls it. */
export function typeText(type: Type): string {
  const id = type.typeId;
  const known = NUMBERS.get(id);
  if (known) return known;
  if (isList(type)) return `list<${typeText(type.valueType)}>`;
  if (id === TypeId.VARCHAR) return 'string';
  if (id === TypeId.BLOB) return 'bytes';
  if (id === TypeId.DECIMAL) return String(type).toLowerCase();
  if (id === TypeId.TIMESTAMP_TZ) return 'timestamp with time zone';
  if (TIMESTAMPS.has(id)) return 'timestamp';
  if (id === TypeId.STRUCT) return 'struct';
  if (id === TypeId.MAP) return 'map';
  return TEXTS.get(id) ?? String(type).toLowerCase();
}

/** What to select for a column, and what comes; null: it cannot be read. */
export function selectionOf(name: string, type: Type): { sql: string; form: Form } | null {
  const column = quoted(name);
  const direct = directForm(type);
  if (direct) return { sql: column, form: direct };
  const text = textSql(column, type);
  if (text) return { sql: text, form: { kind: 'strings' } };
  if (isList(type) && hasText(type.valueType)) {
    return { sql: `CAST(${column} AS VARCHAR[])`, form: { kind: 'list', child: { kind: 'strings' } } };
  }
  if (OBJECTS.has(type.typeId) || isList(type)) {
    return { sql: `to_json(${column})`, form: { kind: 'json' } };
  }
  return null;
}

function directForm(type: Type): Form | null {
  const numbers = NUMBERS.get(type.typeId);
  if (numbers) return { kind: 'numbers', type: numbers };
  if (type.typeId === TypeId.VARCHAR) return { kind: 'strings' };
  if (type.typeId === TypeId.BLOB) return { kind: 'bytes' };
  if (type.typeId !== TypeId.LIST) return null;
  const child = directForm((type as ListType).valueType);
  return child && { kind: 'list', child };
}

/** ISO 8601, where it is a time. */
function textSql(column: string, type: Type): string | null {
  const id = type.typeId;
  if (TIMESTAMPS.has(id)) return `replace(CAST(${column} AS VARCHAR), ' ', 'T')`;
  // Through microseconds, since the text of a time with a zone is a matter of where it is read.
  if (id === TypeId.TIMESTAMP_TZ) {
    return `replace(CAST(make_timestamp(epoch_us(${column})) AS VARCHAR), ' ', 'T') || 'Z'`;
  }
  return TEXTS.has(id) ? `CAST(${column} AS VARCHAR)` : null;
}

function hasText({ typeId }: Type): boolean {
  return TEXTS.has(typeId) || TIMESTAMPS.has(typeId);
}

function isList(type: Type): type is ListType | ArrayType {
  return type.typeId === TypeId.LIST || type.typeId === TypeId.ARRAY;
}
