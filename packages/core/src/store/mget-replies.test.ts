import { expect, test } from 'vitest';
import { BufferPool } from '../inference/buffer-pool.js';
import { MgetReplies, type MgetReply } from './mget-replies.js';

const STREAM = Buffer.from(
  '*3\r\n$5\r\na\r\nbc\r\n$-1\r\n$0\r\n\r\n-LOADING not yet\r\n*1\r\n$1\r\n*\r\n*2\r\n$-1\r\n$-1\r\n',
);
const VALUES = [['a\r\nbc', null, ''], 'LOADING not yet', ['*'], [null, null]];

function reader() {
  const pool = new BufferPool();
  const replies: MgetReply[] = [];
  return { pool, replies, mget: new MgetReplies(pool, (reply) => replies.push(reply)) };
}

function readable(reply: MgetReply): unknown {
  if (reply instanceof Error) return reply.message;
  return reply.map((value) => value && Buffer.from(value.bytes).toString('latin1'));
}

test('replies are read wherever the stream is cut, from a buffer that is used again', () => {
  for (let size = 1; size <= STREAM.length; size++) {
    const { replies, mget } = reader();
    const buffer = new Uint8Array(size);
    for (let at = 0; at < STREAM.length; at += size) {
      const piece = STREAM.subarray(at, at + size);
      buffer.fill(0xff);
      buffer.set(piece);
      mget.take(buffer.subarray(0, piece.length));
    }
    expect(replies.map(readable)).toEqual(VALUES);
  }
});

test('a lost connection leaves no memory held, and the next stream begins anew', () => {
  for (let cut = 0; cut < STREAM.indexOf('*1'); cut++) {
    const { pool, replies, mget } = reader();
    mget.take(STREAM.subarray(0, cut));
    mget.reset();
    for (const value of replies.flatMap((reply) => (reply instanceof Error ? [] : reply)))
      if (value?.memory) pool.release(value.memory);
    expect(pool.stats.heldBytes).toBe(0);
    replies.length = 0;
    mget.take(STREAM);
    expect(replies.map(readable)).toEqual(VALUES);
  }
});

test.each(['+OK\r\n', '$3\r\nabc\r\n', '*0\r\n', '*1\r\n*1\r\n', '*1\r\n$-2\r\n', '*1\r\n$x\r\n'])(
  'what is no reply to MGET is an error: %j',
  (text) => {
    expect(() => reader().mget.take(Buffer.from(text))).toThrow('in place of a reply to MGET');
  },
);
