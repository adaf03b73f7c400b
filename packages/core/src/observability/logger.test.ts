import { describe, expect, it } from 'vitest';
import { createLogger, type LoggerOptions, silentLogger } from './logger.js';

function setup(options: Partial<LoggerOptions> = {}) {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const logger = createLogger({ name: 'worker', level: 'info', destination, ...options });
  return { logger, lines, parsed: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

describe('a log line', () => {
  it('is one line of JSON with time, level as text, service, fields and message', () => {
    const { logger, lines, parsed } = setup();
    logger.info({ trace_id: 't', rows: 2, reasons: ['a "b"\n'] }, 'request accepted');
    expect(lines[0]).toMatch(/^[^\n]+\n$/);
    expect(parsed()).toEqual([
      {
        level: 'info',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        service: 'worker',
        pid: process.pid,
        trace_id: 't',
        rows: 2,
        reasons: ['a "b"\n'],
        msg: 'request accepted',
      },
    ]);
  });

  it('has the fields of each logger above it', () => {
    const { logger, parsed } = setup();
    logger.child({ worker_id: 'w' }).child({ model: 'm' }).warn({ rows: 1 }, 'x');
    expect(parsed()[0]).toMatchObject({ level: 'warn', worker_id: 'w', model: 'm', rows: 1 });
  });

  it('holds an error with its stack and its causes', () => {
    const { logger, parsed } = setup();
    logger.error({ err: new Error('outer', { cause: new Error('inner') }) }, 'x');
    expect(parsed()[0]?.err).toMatchObject({
      message: 'outer',
      stack: expect.stringContaining('logger.test'),
      cause: { message: 'inner' },
    });
  });

  it('of an error of Redis names the command and none of its arguments, which may be a password', () => {
    const { logger, lines, parsed } = setup();
    const refused = Object.assign(new Error('WRONGPASS'), { command: { name: 'auth', args: ['s3cret'] } });
    logger.error({ err: refused }, 'x');
    logger.error({ err: new Error('outer', { cause: refused }) }, 'x');
    logger.error({ err: new AggregateError([refused], 'several') }, 'x');
    expect(lines.join('')).not.toContain('s3cret');
    expect(parsed()[0]?.err).toMatchObject({ message: 'WRONGPASS', command: 'auth' });
  });

  it('is not written below the level', () => {
    const { logger, lines } = setup({ level: 'warn' });
    logger.debug({}, 'x');
    logger.info({}, 'x');
    logger.warn({}, 'x');
    expect(lines).toHaveLength(1);
    expect([logger.isLevelEnabled('info'), logger.isLevelEnabled('warn')]).toEqual([false, true]);
  });
});

describe('a pretty line', () => {
  it('is short, with the fields as key=value', () => {
    const { logger, lines } = setup({ pretty: true });
    logger.info({ model: 'm', why: 'two words', ids: [1, 2] }, 'loaded');
    expect(lines[0]).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3} INFO {2}worker loaded model=m why="two words" ids=\[1,2\]\n$/,
    );
  });

  it('shows the stack of an error below', () => {
    const { logger, lines } = setup({ pretty: true });
    logger.error({ err: new Error('boom') }, 'failed');
    expect(lines[0]).toMatch(/ERROR worker failed\n {2}Error: boom\n {2,}at /);
  });
});

describe('the silent logger', () => {
  it('writes nothing, and neither do its children', () => {
    silentLogger.child({}).error({}, 'x');
    expect(silentLogger.isLevelEnabled('error')).toBe(false);
  });
});
