import { describe, expect, it } from 'vitest';
import { setup } from '../fake-api.fixture.js';
import { at } from './answers.fixture.js';

const deployment = {
  model: 'add',
  revision: 7,
  source: null,
  registered: true,
  load_mode: null,
  version_policy: null,
  loads: {},
  pinned: null,
  instances: null,
  settings: {},
  aliases: { canary: '2' },
  split: { stable: '1', weights: { 1: 90, canary: 10 }, rollback: null },
  shadow: null,
  digests: {},
  updated_at: at,
  updated_by: 'ada',
};
const edited = { body: { deployment, notices: [] } };
const copy = {
  worker_id: 'w1',
  device: 'cpu',
  digest: 'a'.repeat(64),
  provider: 'cpu',
  state: 'ready',
  reason: null,
  instances: 1,
  memory_bytes: 30 * 2 ** 20,
  last_used_at: null,
  backlog_rows: 0,
  breaker: 'closed',
};
const version = (number: string, over: object = {}) => ({
  version: number,
  digest: 'a'.repeat(64),
  aliases: [],
  served_as: [],
  wanted: 'load',
  wanted_reason: 'by the version policy',
  copies: [copy],
  ...over,
});
const described = {
  model: 'add',
  in_repository: true,
  deployment,
  serving: null,
  load_mode: 'eager',
  version_policy: 'latest',
  default_version: '1',
  fallback: null,
  versions: [version('1', { served_as: ['default'] }), version('2', { aliases: ['canary'], copies: [] })],
  convergence: { done: true, waiting_for: [], failed: [] },
  split_report: null,
  shadow_report: null,
  problems: [],
};

describe('an edit', () => {
  it.each([
    [['load', 'add'], 'POST', ':load', {}],
    [['load', 'add', '2'], 'POST', ':load', { version: '2' }],
    [['unload', 'add', 'canary'], 'POST', ':unload', { version: 'canary' }],
    [['scale', 'add', '3'], 'POST', ':scale', { instances: 3 }],
    [['alias', 'add', 'canary', '2'], 'PUT', '/aliases/canary', { version: '2' }],
    [['alias', 'add', 'canary', '--remove'], 'DELETE', '/aliases/canary', undefined],
    [
      ['split', 'add', '2=10', '--stable', '1'],
      'PUT',
      '/split',
      { stable: '1', weights: { 1: 90, 2: 10 }, rollback: {} },
    ],
    [
      ['split', 'add', '1=99.5', '2=0.5', '--stable', '1', '--no-rollback'],
      'PUT',
      '/split',
      { stable: '1', weights: { 1: 99.5, 2: 0.5 }, rollback: null },
    ],
    [['split', 'add', '--end'], 'DELETE', '/split', undefined],
    [['shadow', 'add', '2', '--sample', '0.1'], 'PUT', '/shadow', { version: '2', sample: 0.1 }],
    [['shadow', 'add', '--end'], 'DELETE', '/shadow', undefined],
    [['unregister', 'add'], 'DELETE', '', undefined],
  ])('remuda models %j is %s …%s %j', async (args, method, path, body) => {
    const { run, sent, terminal } = await setup({ [`${method} /v1/admin/models/add${path}`]: edited });
    expect(await run(['models', ...args])).toBe(0);
    expect(sent[0]?.body).toBe(body === undefined ? '' : JSON.stringify(body));
    expect(terminal.answers).toEqual([
      'add revision 7 is written; `remuda models status add` says how far the fleet is',
    ]);
  });

  it('registers with what is given', async () => {
    const { run, sent } = await setup({ 'POST /v1/admin/models': edited });
    const args = [
      'add',
      's3://bucket/add',
      '--load-mode',
      'on_demand',
      '--version-policy',
      'only:1,3',
      '--pinned',
    ];
    expect(await run(['models', 'register', ...args, '--json'])).toBe(0);
    expect(JSON.parse(sent[0]?.body ?? '')).toEqual({
      name: 'add',
      source: 's3://bucket/add',
      load_mode: 'on_demand',
      version_policy: { only: ['1', '3'] },
      pinned: true,
    });
  });

  it.each([
    [['split', 'add', '2=10', '2=20', '--stable', '1'], /Give each version one share/],
    [['split', 'add', '2:10', '--stable', '1'], /"2:10" is no share/],
    [['split', 'add'], /Give shares such as 2=10, or --end/],
    [['alias', 'add', 'canary'], /Give the version/],
    [['shadow', 'add', '2', '--sample', '2'], /a number from 0 to 1/],
    [['register', 'add', '--version-policy', 'newest'], /is no version policy/],
    [['scale', 'add', '0'], /a whole number from 1 to 64/],
    [['load'], /missing required argument 'name'/],
  ])('remuda models %j is wrong usage, and it says why', async (args, why) => {
    const { run, notes, sent } = await setup();
    expect(await run(['models', ...args])).toBe(2);
    expect(notes()).toMatch(why);
    expect(sent).toEqual([]);
  });

  it.each<[string[], object, object, string]>([
    [
      ['2=10'],
      { aliases: { stable: '1' } },
      { stable: 'stable', weights: { 2: 10, stable: 90 } },
      'alias stable, which leads to version 1',
    ],
    [
      ['1=60', '2=40'],
      { aliases: { stable: '1' } },
      { stable: '1', weights: { 1: 60, 2: 40 } },
      'alias stable, which leads to version 1',
    ],
    [
      ['2=10'],
      { aliases: {} },
      { stable: '1', weights: { 1: 90, 2: 10 } },
      'version 1, which default leads to',
    ],
  ])(
    'remuda models split add %j of %j is %j: it is said what is compared',
    async (shares, over, body, why) => {
      const { run, sent, notes } = await setup({
        'GET /v1/admin/models/add': { body: { ...described, deployment: { ...deployment, ...over } } },
        'PUT /v1/admin/models/add/split': edited,
      });
      expect(await run(['models', 'split', 'add', ...shares])).toBe(0);
      expect(JSON.parse(sent[1]?.body ?? '')).toEqual({ ...body, rollback: {} });
      expect(notes()).toBe(`compared with ${why}; --stable names another`);
    },
  );

  it.each<[object, RegExp]>([
    [{ default_version: '2' }, /rest would go to version 2, which default leads to, and that has a share/],
    [{ default_version: null }, /add serves no version yet: say with --stable/],
  ])('a split whose stable side cannot be told from %j is not made', async (over, why) => {
    const { run, sent, notes } = await setup({
      'GET /v1/admin/models/add': { body: { ...described, ...over } },
    });
    expect(await run(['models', 'split', 'add', '2=10'])).toBe(2);
    expect(notes()).toMatch(why);
    expect(sent).toHaveLength(1);
  });

  it('shows what the API has to say about it', async () => {
    const body = { deployment, notices: ['no version of add may be loaded now'] };
    const { run, notes } = await setup({ 'POST /v1/admin/models/add:unload': { body } });
    expect(await run(['models', 'unload', 'add'])).toBe(0);
    expect(notes()).toBe('no version of add may be loaded now');
  });
});

describe('--wait', () => {
  it('ends with what the fleet has when it is there', async () => {
    const { run, terminal } = await setup({
      'POST /v1/admin/models/add:load': edited,
      'GET /v1/admin/models/add': { body: described },
    });
    expect(await run(['models', 'load', 'add', '--wait'])).toBe(0);
    expect(terminal.answers).toEqual([
      'add  revision 7 by ada, load mode eager, serves 1',
      'split 1=90, canary=10 against 1',
      'version  digest        aliases  serves   wanted  worker  device  state    memory',
      '      1  aaaaaaaaaaaa           default  load    w1      cpu     ready     30 MB',
      '      2  aaaaaaaaaaaa  canary            load                    nowhere',
    ]);
  });

  it('fails where a worker could not do it, and says why', async () => {
    const convergence = { done: true, waiting_for: [], failed: ['w1: 2 on cpu: golden case a differs'] };
    const { run, terminal } = await setup({
      'POST /v1/admin/models/add:load': edited,
      'GET /v1/admin/models/add': { body: { ...described, convergence } },
    });
    expect(await run(['models', 'load', 'add', '--wait', '5'])).toBe(1);
    expect(terminal.answers).toContain('failed: w1: 2 on cpu: golden case a differs');
  });

  it('that is over before the fleet is there ends with 4', async () => {
    const convergence = { done: false, waiting_for: ['w1: 2 on cpu is loading'], failed: [] };
    const { run, terminal } = await setup({
      'POST /v1/admin/models/add:load': edited,
      'GET /v1/admin/models/add': { body: { ...described, convergence } },
    });
    expect(await run(['models', 'load', 'add', '--wait', '0'])).toBe(4);
    expect(terminal.answers).toContain('under way: w1: 2 on cpu is loading');
  });
});

describe('remuda models status of one', () => {
  it('says which canary of the split was taken back, when and why', async () => {
    const detail = { canary: '2', version: '2', by: 'errors', error_rate: { stable: 0, canary: 0.5 } };
    const event = { at, who: 'fleet', what: 'rolled_back', detail, revision: 7 };
    const { run, terminal } = await setup({
      'GET /v1/admin/models/add': { body: described },
      'GET /v1/admin/models/add/history?limit=200': { body: { events: [event] } },
    });
    expect(await run(['models', 'status', 'add'])).toBe(0);
    expect(terminal.answers).toContain(
      'version 2 was taken back at 2026-01-01T00:00:00Z: 50 % errors, the stable version 0 %',
    );
  });

  it.each([
    [null, null, 'requests are refused'],
    [null, 'spare', 'answered by spare'],
    ['2', 'spare', 'requests go to 2'],
  ])('of which %s is served and %s is the fallback says: %s', async (default_version, fallback, instead) => {
    const off = version('1', { served_as: ['default'], wanted: 'off', wanted_reason: 'unloaded by name' });
    const whole = { ...described, deployment: { ...deployment, split: null }, versions: [off] };
    const { run, terminal } = await setup({
      'GET /v1/admin/models/add': { body: { ...whole, default_version, fallback } },
    });
    expect(await run(['models', 'status', 'add'])).toBe(0);
    expect(terminal.answers).toContain(
      `default leads to 1, which is not loaded (unloaded by name): ${instead}`,
    );
  });
});

describe('remuda models status', () => {
  const summary = {
    model: 'add',
    registered: true,
    source: null,
    revision: 7,
    load_mode: 'on_demand',
    versions: ['1', '2'],
    default_version: '1',
    aliases: { stable: '1' },
    split: { 1: 90, 2: 10 },
    shadow: null,
    states: { ready: 2, failed: 1 },
    converged: false,
    problems: ['add/2/model.onnx: the model file is missing'],
  };
  const gone = { ...summary, model: 'gone', registered: false, problems: [], converged: true };
  const answers = { 'GET /v1/admin/models': { body: { models: [summary, gone] } } };

  it('lists what is wanted of all', async () => {
    const { run, terminal } = await setup(answers);
    expect(await run(['models', 'status'])).toBe(0);
    expect(terminal.answers).toEqual([
      'model  load mode  versions  serves  aliases   split       copies             fleet',
      'add    on_demand  1, 2           1  stable→1  1=90, 2=10  2 ready, 1 failed  under way',
      'add: add/2/model.onnx: the model file is missing',
      'taken out: 1 model, shown with --all',
    ]);
  });

  it('lists what was taken out with --all', async () => {
    const { run, terminal } = await setup(answers);
    expect(await run(['models', 'status', '--all'])).toBe(0);
    expect(terminal.answers.join('\n')).toMatch(/^gone +taken out /m);
    expect(terminal.answers.join('\n')).not.toContain('--all');
  });
});

it('remuda models history tells who did what, newest first', async () => {
  const events = [
    {
      at,
      who: 'fleet',
      what: 'moved',
      detail: { ref: 'default', from: '1', to: '2', reason: 'ready on 1 device' },
      revision: null,
    },
    { at, who: 'ada', what: 'alias_set', detail: { alias: 'stable', version: '2' }, revision: 7 },
  ];
  const { run, terminal } = await setup({ 'GET /v1/admin/models/add/history?limit=2': { body: { events } } });
  expect(await run(['models', 'history', 'add', '--limit', '2'])).toBe(0);
  expect(terminal.answers).toEqual([
    'when                  who    what       detail                             revision',
    '2026-01-01T00:00:00Z  fleet  moved      default: 1 → 2, ready on 1 device',
    '2026-01-01T00:00:00Z  ada    alias_set  alias=stable, version=2                   7',
  ]);
});
