import { describe, expect, it } from 'vitest';
import { setup } from './fake-api.fixture.js';

describe('the command line', () => {
  it.each([
    [['frob'], /unknown command 'frob'/],
    [['up', '--workers', 'x'], /a whole number from 0 to 64/],
    [['up', '--api-port', '70000'], /a whole number from 0 to 65535/],
    [['submit'], /missing required argument 'model'/],
    [
      ['submit', 'add', '{"x": 1}'],
      /Give inputs with --input NAME=VALUE, or a whole request with --file FILE/,
    ],
    [['submit', 'add'], /Nothing to send: give --image FILE/],
    [['submit', 'add', '--input', 'x'], /Expected NAME=VALUE/],
    [['submit', 'add', '--input', 'x=1', '--input', 'x=2'], /--input x is given twice/],
    [['submit', 'add', '--input', 'x=1', '--file', 'f'], /--input and --file cannot stand together/],
    [['submit', 'add', '--input', 'x=1', '--priority', '10'], /a whole number from 0 to 9/],
    [['submit', 'add', '--file', 'nowhere.json'], /nowhere\.json cannot be read/],
    [['models', '--url', 'fleet'], /Expected an address/],
  ])('%j is wrong usage, and it says why', async (args, why) => {
    const { run, notes, sent } = await setup();
    expect(await run(args)).toBe(2);
    expect(notes()).toMatch(why);
    expect(sent).toEqual([]);
  });

  it('lists commands and exit codes with --help', async () => {
    const { run, terminal } = await setup();
    expect(await run(['--help'])).toBe(0);
    const help = terminal.answers.join('\n');
    for (const command of ['up', 'submit', 'result', 'models', 'fleet', 'doctor'])
      expect(help).toContain(`  ${command} `);
    expect(help).toContain('Exit codes:');
  });

  it.each([
    [['models', 'status'], 'What is wanted of the models, and how far the fleet is.'],
    [['models', 'split'], 'Spread requests without a version by weight.'],
    [['models', 'validate'], 'Try a model: load it, run its golden cases, compare batches with single rows.'],
    [['fleet'], 'List the workers that are alive.'],
  ])('%j --help says what it does', async (args, what) => {
    const { run, terminal } = await setup();
    expect(await run([...args, '--help'])).toBe(0);
    expect(terminal.answers.join('\n').replace(/\s+/g, ' ')).toContain(` ${what} `);
  });

  it('says what to do when no API answers, and ends with 3', async () => {
    const { run, notes, url, close: stop } = await setup();
    await stop();
    expect(await run(['models'])).toBe(3);
    expect(notes()).toBe(
      `No API answers at ${url} (ECONNREFUSED).\nStart one with \`remuda up\` (npm start), or give the address of another with --url or REMUDA_URL.`,
    );
  });

  it('says so when something else than Remuda answers', async () => {
    const { run, notes } = await setup({ 'GET /v1/models': { body: { hello: 'world' } } });
    expect(await run(['models'])).toBe(1);
    expect(notes()).toMatch(
      /answered 200, which differs at "models".*Is it the API of a Remuda of this version\?/,
    );
  });
});
