/** A form (multipart/form-data, RFC 7578) whose file is a stream: nothing of it is held, however large it is. */
import { randomBytes } from 'node:crypto';

export interface StreamedForm {
  contentType: string;
  content: AsyncIterable<Uint8Array>;
}

/** @param fields go before the file, so that who reads the form knows them by then */
export function formWithFile(
  fields: Readonly<Record<string, string>>,
  filename: string,
  file: AsyncIterable<Buffer | string>,
): StreamedForm {
  const boundary = `remuda-${randomBytes(16).toString('hex')}`;
  const head = [
    ...Object.entries(fields).map(([name, value]) => partHead(boundary, `name="${name}"`) + value),
    `${partHead(boundary, `name="file"; filename="${escaped(filename)}"`, 'application/octet-stream')}`,
  ].join('\r\n');
  async function* content(): AsyncGenerator<Uint8Array> {
    yield Buffer.from(head);
    for await (const bytes of file) yield typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
    yield Buffer.from(`\r\n--${boundary}--\r\n`);
  }
  return { contentType: `multipart/form-data; boundary=${boundary}`, content: content() };
}

function partHead(boundary: string, disposition: string, type?: string): string {
  const typeLine = type === undefined ? '' : `content-type: ${type}\r\n`;
  return `--${boundary}\r\ncontent-disposition: form-data; ${disposition}\r\n${typeLine}\r\n`;
}

/** As the WHATWG says for names of files in forms. */
function escaped(name: string): string {
  return name.replace(/\r/g, '%0D').replace(/\n/g, '%0A').replace(/"/g, '%22');
}
