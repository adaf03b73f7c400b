/**
 * A record of CSV as its fields. What keeps the rules is taken apart here, since csv-parse takes five times as long;
 * whatever does not is csv-parse's, which knows what is wrong with it.
 */
import { type CsvError, parse } from 'csv-parse/sync';

/** Fields of a record, or why it has none. */
export type CsvRecord = string[] | string;

/** @param text one record, without its newline */
export function parseRecord(text: string, delimiter: string): CsvRecord {
  if (!text.includes('"')) return text.split(delimiter);
  const fields = soundFields(text, delimiter);
  if (fields) return fields;
  try {
    const records = parse(text, { delimiter, relax_column_count: true });
    if (records.length === 1) return records[0] as string[];
    return `is ${records.length} records, where one was expected; close every quote that is opened`;
  } catch (error) {
    return faultOf(error as CsvError);
  }
}

/** null: it does not keep the rules of RFC 4180. */
function soundFields(text: string, delimiter: string): string[] | null {
  const fields: string[] = [];
  for (let from = 0; ; ) {
    const quoted = text.startsWith('"', from);
    const end = quoted ? closingQuote(text, from) + 1 : endOfField(text, delimiter, from);
    if (end === 0) return null;
    const field = quoted ? text.slice(from + 1, end - 1) : text.slice(from, end);
    if (!quoted && field.includes('"')) return null;
    fields.push(quoted && field.includes('"') ? field.replaceAll('""', '"') : field);
    if (end === text.length) return fields;
    if (!text.startsWith(delimiter, end)) return null;
    from = end + 1;
  }
}

/** -1: there is none. */
function closingQuote(text: string, opening: number): number {
  for (let at = text.indexOf('"', opening + 1); at !== -1; at = text.indexOf('"', at + 2))
    if (!text.startsWith('"', at + 1)) return at;
  return -1;
}

function endOfField(text: string, delimiter: string, from: number): number {
  const found = text.indexOf(delimiter, from);
  return found === -1 ? text.length : found;
}

function faultOf({ code, column, message }: CsvError): string {
  const field = typeof column === 'number' ? ` in field ${column + 1}` : '';
  switch (code) {
    case 'CSV_QUOTE_NOT_CLOSED':
      return `has a quote${field} that is never closed; everything behind it is taken for one field: close it with "`;
    case 'INVALID_OPENING_QUOTE':
      return `has a quote${field} in the middle of a field; put the field in quotes and write "" for each quote in it`;
    case 'CSV_INVALID_CLOSING_QUOTE':
      return `has letters${field} behind a closing quote; write "" for a quote in a quoted field`;
    default:
      return `is not valid CSV: ${message}`;
  }
}
