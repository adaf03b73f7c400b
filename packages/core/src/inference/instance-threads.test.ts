import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { InstanceThreads } from './instance-threads.js';

const started: Worker[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((thread) => thread.terminate()));
});

function setup() {
  const threads = new InstanceThreads();
  const take = (): Worker => {
    const thread = threads.take();
    started.push(thread);
    return thread;
  };
  return { threads, take };
}

/** Asks a thread for something it can answer without a model. */
async function answerOf(thread: Worker): Promise<unknown> {
  const answer = once(thread, 'message');
  thread.postMessage({ type: 'unload' });
  return (await answer)[0];
}

describe('threads of instances', () => {
  it('are used again, and answer whoever took them last', async () => {
    const { threads, take } = setup();
    const first = take();
    const heard: unknown[] = [];
    first.on('message', (message) => heard.push(message));
    expect(await answerOf(first)).toEqual({ type: 'unloaded' });
    await threads.giveBack(first);
    expect(take()).toBe(first);
    expect(await answerOf(first)).toEqual({ type: 'unloaded' });
    expect(heard).toHaveLength(1);
  });

  it('are ended where enough are kept', async () => {
    const { threads, take } = setup();
    const three = [take(), take(), take()];
    for (const thread of three) await threads.giveBack(thread);
    expect(three.map(({ threadId }) => threadId > 0)).toEqual([true, true, false]);
  });

  it('that died while nobody had them are not given out', async () => {
    const { threads, take } = setup();
    const first = take();
    await threads.giveBack(first);
    await first.terminate();
    expect(take()).not.toBe(first);
  });
});
