/** The answers of a table as Parquet, in the columns that a bulk job writes: row, the kept id, the output as a list. */
import { fileWriter, ParquetWriter } from 'hyparquet-writer';

type Schema = ConstructorParameters<typeof ParquetWriter>[0]['schema'];

const GROUP_ROWS = 100_000;
const SCHEMA: Schema = [
  { name: 'root', num_children: 5 },
  { name: 'row', type: 'INT64', repetition_type: 'REQUIRED' },
  { name: 'id', type: 'INT64', repetition_type: 'OPTIONAL' },
  { name: 'probabilities', repetition_type: 'OPTIONAL', num_children: 1, converted_type: 'LIST' },
  { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
  { name: 'element', type: 'FLOAT', repetition_type: 'REQUIRED' },
  { name: 'error_code', type: 'BYTE_ARRAY', repetition_type: 'OPTIONAL', converted_type: 'UTF8' },
  { name: 'error_message', type: 'BYTE_ARRAY', repetition_type: 'OPTIONAL', converted_type: 'UTF8' },
];

export class TableOutput {
  readonly #writer: ParquetWriter;
  #ids = new BigInt64Array(GROUP_ROWS);
  #answers: number[][] = [];
  #written = 0;

  constructor(path: string) {
    this.#writer = new ParquetWriter({ writer: fileWriter(path), schema: SCHEMA });
  }

  /** @param probabilities two of each row */
  append(ids: BigInt64Array, probabilities: Float32Array): void {
    for (let i = 0; i < ids.length; i++) {
      this.#ids[this.#answers.length] = ids[i] as bigint;
      this.#answers.push([probabilities[2 * i] as number, probabilities[2 * i + 1] as number]);
      if (this.#answers.length === GROUP_ROWS) this.#writeGroup();
    }
  }

  /** @returns rows of the file */
  finish(): number {
    if (this.#answers.length > 0) this.#writeGroup();
    void this.#writer.finish();
    return this.#written;
  }

  #writeGroup(): void {
    const rows = this.#answers.length;
    const numbers = BigInt64Array.from({ length: rows }, (_, i) => BigInt(this.#written + i));
    const none = new Array<null>(rows).fill(null);
    void this.#writer.write({
      columnData: [
        { name: 'row', data: numbers },
        { name: 'id', data: this.#ids.subarray(0, rows) },
        { name: 'probabilities', data: this.#answers },
        { name: 'error_code', data: none },
        { name: 'error_message', data: none },
      ],
      rowGroupSize: GROUP_ROWS,
    });
    this.#written += rows;
    this.#answers = [];
  }
}
