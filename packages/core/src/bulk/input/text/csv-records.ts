/**
 * Records of CSV as fields. What has no quotes is split as it is; quotes are csv-parse's, for the whole span where it
 * takes it, else record by record, so that a record that breaks the rules fails alone.
 */
import { type CsvError, parse } from 'csv-parse/sync';

/** Fields of a record, or why it has none. */
export type CsvRecord = string[] | string;

/** @param text one record, without its newline */
export function parseRecord(text: string, delimiter: string): CsvRecord {
  if (!text.includes('"')) return text.split(delimiter);
  try {
    const records = parse(text, { delimiter, relax_column_count: true });
    if (records.length === 1) return records[0] as string[];
    return `is ${records.length} records, where one was expected; close every quote that is opened`;
  } catch (error) {
    return faultOf(error as CsvError);
  }
}

/** The records of a text that holds quotes; null: it has to be taken record by record. */
export function parseRecords(text: string, delimiter: string, expected: number): string[][] | null {
  try {
    const records = parse(text, {
      delimiter,
      relax_column_count: true,
      skip_empty_lines: true,
    }) as string[][];
    return records.length === expected ? records : null;
  } catch {
    return null;
  }
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
