import { expect, it } from 'vitest';
import { AofParser } from './aof-parser.js';

function encoded(...parts: string[]): Buffer {
  return Buffer.from(
    `*${parts.length}\r\n${parts.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`).join('')}`,
  );
}

const texts = (commands: readonly (readonly Buffer[])[]) =>
  commands.map((command) => command.map((part) => part.toString()).join(' '));

it('gives commands as they become complete, however the bytes come', () => {
  const file = Buffer.concat([
    encoded('SET', 'a', '1'),
    Buffer.from('#TS:1700000000\r\n'),
    encoded('SET', 'b', 'x\r\n*1\r\n'),
  ]);
  const parser = new AofParser();
  const found: string[] = [];
  for (const byte of file) found.push(...texts(parser.push(Buffer.of(byte))));
  expect(found).toEqual(['SET a 1', 'SET b x\r\n*1\r\n']);
  expect(parser.committed).toBe(file.length);
});

it('gives a transaction as a whole or not at all', () => {
  const parser = new AofParser();
  const begun = Buffer.concat([encoded('MULTI'), encoded('HSET', 'k', 's', 'running')]);
  expect(parser.push(begun)).toEqual([]);
  expect(parser.committed).toBe(0);
  expect(texts(parser.push(encoded('EXEC')))).toEqual(['HSET k s running']);
});

it('forgets what was not whole when Redis starts again and has cut it off', () => {
  const parser = new AofParser();
  const kept = encoded('SET', 'a', '1');
  parser.push(
    Buffer.concat([kept, encoded('MULTI'), encoded('SET', 'b', '2'), Buffer.from('*3\r\n$3\r\nSE')]),
  );
  parser.rewind();
  expect(parser.wanted).toBe(kept.length);
  expect(texts(parser.push(encoded('SET', 'c', '3')))).toEqual(['SET c 3']);
});

it('says where a file is not one', () => {
  expect(() => new AofParser().push(Buffer.from('REDIS0011\n'))).toThrow('no command at byte 0');
});
