import type { ModelDeployment } from '@remuda/schemas';
import { describe, expect, it } from 'vitest';
import { untouched } from './deployments.js';
import { decideMoves, type MoveFacts, type VersionCopy } from './reference-moves.js';

const copy = (text: string): VersionCopy => {
  // "a/cpu 2 ready", a failure with its reason behind.
  const [place = '', version = '', state = '', ...reason] = text.split(' ');
  const [workerId = '', device = ''] = place.split('/');
  const why = reason.length > 0 ? reason.join(' ') : null;
  return { workerId, device, version, state: state as VersionCopy['state'], reason: why };
};

const serving = (refs: Record<string, string | [version: string, previous: string]>) => ({
  model: 'm',
  refs: Object.fromEntries(
    Object.entries(refs).map(([ref, led]) => {
      const [version, previous] = typeof led === 'string' ? [led, null] : led;
      return [ref, { version, previous, since: new Date(0).toISOString(), reason: 'r' }];
    }),
  ),
});

interface Case extends Partial<Omit<MoveFacts, 'copies' | 'serving' | 'deployment'>> {
  copies: string[];
  serves?: Record<string, string | [string, string]>;
  desired?: Partial<ModelDeployment>;
}

function decide({ copies, serves, desired, ...rest }: Case) {
  return decideMoves({
    deployment: { ...untouched('m'), ...desired },
    config: { version_policy: 'latest', load_mode: 'eager' },
    serving: serves && serving(serves),
    copies: copies.map(copy),
    starting: false,
    ...rest,
  });
}

const short = (found: Case) =>
  decide(found).map(({ ref, from, to, kind }) => `${ref} ${from} → ${to} ${kind}`);

describe('a reference that leads nowhere yet', () => {
  it('goes to the newest version as soon as any worker has it ready', () => {
    expect(short({ copies: ['a/cpu 1 loading'] })).toEqual([]);
    expect(short({ copies: ['a/cpu 1 loading', 'b/cpu 1 ready'] })).toEqual(['default null → 1 moved']);
  });

  it('waits for the version that is meant, though an older one is ready', () => {
    expect(short({ copies: ['a/cpu 1 ready', 'a/cpu 2 loading'] })).toEqual([]);
  });

  it('goes to what is ready where the version that is meant has failed everywhere', () => {
    const moves = decide({ copies: ['a/cpu 1 ready', 'a/cpu 2 failed golden case differs'] });
    expect(moves).toEqual([
      {
        ref: 'default',
        from: null,
        to: '1',
        kind: 'moved_back',
        reason: 'version 2 failed on cpu of a: golden case differs; 1 is ready',
      },
    ]);
  });

  it('an alias never goes to another version than its own', () => {
    const copies = ['a/cpu 1 ready', 'a/cpu 2 failed broken'];
    const desired = { aliases: { next: '2' }, version_policy: { only: ['1'] } };
    expect(short({ copies, desired, serves: { default: '1' } })).toEqual(['next null → 2 held']);
  });

  it('of a model that is loaded on demand, leads there before anything is loaded', () => {
    const config = { version_policy: 'latest', load_mode: 'on_demand' } as const;
    expect(short({ copies: ['a/cpu 1 unloaded', 'a/cpu 2 unloaded'], config })).toEqual([
      'default null → 2 moved',
    ]);
  });
});

describe('a new version while the old one serves', () => {
  const serves = { default: '1' };

  it('takes over when it is ready in every place where the old one is', () => {
    const before = ['a/cpu 1 ready', 'b/cpu 1 ready', 'a/cpu 2 ready'];
    expect(short({ serves, copies: [...before, 'b/cpu 2 warming'] })).toEqual([]);
    expect(short({ serves, copies: [...before, 'b/cpu 2 ready'] })).toEqual(['default 1 → 2 moved']);
  });

  it('must be ready on each device, not merely on each worker', () => {
    const copies = ['a/cpu 1 ready', 'a/cuda:0 1 ready', 'a/cpu 2 ready'];
    expect(short({ serves, copies })).toEqual([]);
    expect(short({ serves, copies: [...copies, 'a/cuda:0 2 ready'] })).toEqual(['default 1 → 2 moved']);
  });

  it('need not be ready where it may not run', () => {
    const copies = ['a/cpu 1 ready', 'a/cuda:0 1 ready', 'a/cuda:0 2 ready'];
    const allowedOn = (version: string) => (version === '2' ? (['cuda'] as const) : undefined);
    expect(short({ serves, copies, allowedOn })).toEqual(['default 1 → 2 moved']);
  });

  it('must be ready somewhere, also where no place of the old one is allowed to it', () => {
    const copies = ['a/cpu 1 ready', 'a/cuda:0 2 loading'];
    expect(short({ serves, copies, allowedOn: () => ['cuda'] })).toEqual([]);
  });

  it('does not wait for a worker that has neither', () => {
    const copies = ['a/cpu 1 ready', 'a/cpu 2 ready', 'b/cpu 2 loading'];
    expect(short({ serves, copies })).toEqual(['default 1 → 2 moved']);
  });

  it('is held back when it has failed anywhere, with who and why', () => {
    const copies = ['a/cpu 1 ready', 'a/cpu 2 ready', 'b/cpu 2 failed no such file'];
    expect(decide({ serves, copies })).toEqual([
      {
        ref: 'default',
        from: '1',
        to: '2',
        kind: 'held',
        reason: 'version 2 failed on cpu of b: no such file',
      },
    ]);
  });

  it('of a model on demand, also waits where the old one is loaded', () => {
    const config = { version_policy: 'latest', load_mode: 'on_demand' } as const;
    expect(short({ serves, config, copies: ['a/cpu 1 ready', 'a/cpu 2 loading'] })).toEqual([]);
    expect(short({ serves, config, copies: ['a/cpu 1 unloaded', 'a/cpu 2 unloaded'] })).toEqual([
      'default 1 → 2 moved',
    ]);
    expect(short({ serves, config, copies: ['a/cpu 1 unloaded', 'a/cpu 2 failed broken'] })).toEqual([
      'default 1 → 2 held',
    ]);
  });

  it('an older version takes over in the same way when an alias names it', () => {
    const desired = { aliases: { stable: '1' } };
    const copies = ['a/cpu 1 ready', 'a/cpu 2 ready'];
    expect(short({ desired, copies, serves: { default: '2', stable: '2' } })).toEqual([
      'stable 2 → 1 moved',
      'default 2 → 1 moved',
    ]);
  });
});

describe('an old version that no worker has ready', () => {
  it('gives way to the new one wherever that is ready, though another worker failed to load it', () => {
    const copies = ['a/cpu 1 unloaded', 'a/cpu 2 ready', 'b/cpu 2 failed broken'];
    expect(short({ serves: { default: '1' }, copies })).toEqual(['default 1 → 2 moved']);
  });

  it('keeps its references while the new one is being loaded', () => {
    expect(short({ serves: { default: '1' }, copies: ['a/cpu 1 loading', 'a/cpu 2 loading'] })).toEqual([]);
  });
});

describe('a version that is lost', () => {
  const copies = ['a/cpu 1 ready', 'a/cpu 2 ready'];

  it('gives its references back to the version before, if that is ready', () => {
    const desired = { aliases: { stable: '3' } };
    expect(short({ desired, copies, serves: { default: '3', stable: ['3', '1'] } })).toEqual([
      'default 3 → 2 moved',
      'stable 3 → 1 moved_back',
    ]);
  });

  it('else to the newest that is ready and was not unloaded by name', () => {
    const desired = { aliases: { stable: '3' }, loads: { '2': 'unloaded' as const } };
    expect(short({ desired, copies, serves: { stable: '3', default: '1' } })).toEqual([
      'stable 3 → 1 moved_back',
    ]);
  });

  it('does not wait for the version that is meant to follow', () => {
    const left = ['a/cpu 1 ready', 'a/cpu 2 loading'];
    expect(short({ copies: left, serves: { default: '3' } })).toEqual(['default 3 → 1 moved_back']);
  });

  it('is not lost while a worker that has just begun may have it', () => {
    const desired = { aliases: { stable: '3' } };
    expect(short({ desired, copies, serves: { default: '2', stable: '3' }, starting: true })).toEqual([]);
  });

  it('is not lost because every worker is away', () => {
    expect(short({ copies: [], serves: { default: '3' } })).toEqual([]);
  });

  it('takes its references again when it comes back', () => {
    const back = ['a/cpu 1 ready', 'a/cpu 3 ready'];
    const desired = { aliases: { stable: '3' } };
    expect(short({ desired, copies: back, serves: { default: '1', stable: ['1', '3'] } })).toEqual([
      'stable 1 → 3 moved',
      'default 1 → 3 moved',
    ]);
  });
});

describe('what is not moved', () => {
  it('an alias that was removed is dropped, also when no worker is there', () => {
    expect(short({ copies: [], serves: { default: '1', canary: '2' } })).toEqual(['canary 2 → null dropped']);
  });

  it('a model that was taken out stays as it is', () => {
    const desired = { registered: false };
    expect(short({ desired, copies: ['a/cpu 2 ready'], serves: { default: '1' } })).toEqual([]);
  });

  it('default stays while the configuration is not known; aliases do not need it', () => {
    const desired = { aliases: { canary: '2' } };
    const copies = ['a/cpu 1 ready', 'a/cpu 2 ready'];
    expect(short({ desired, copies, config: undefined })).toEqual(['canary null → 2 moved']);
  });

  it('default follows the stable side of a split, not the newest version', () => {
    const split = { stable: '1', weights: { '1': 90, '2': 10 }, rollback: null };
    const copies = ['a/cpu 1 ready', 'a/cpu 2 ready'];
    expect(short({ desired: { split }, copies, serves: { default: '1' } })).toEqual([]);
  });

  it('default of an explicit model stays where it is when nothing is loaded by name', () => {
    const config = { version_policy: 'latest', load_mode: 'explicit' } as const;
    expect(short({ config, copies: ['a/cpu 1 ready'], serves: { default: '1' } })).toEqual([]);
  });
});
