import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { StopSignals } from './stop-signals.js';

function setup() {
  const host = new EventEmitter();
  const signals = new StopSignals(host);
  const heard: string[] = [];
  void signals.first.then(({ name }) => heard.push(`first ${name}`));
  void signals.second.then(({ name, exitCode }) => heard.push(`second ${name} ${exitCode}`));
  const emit = async (name: string) => {
    host.emit(name);
    await new Promise(setImmediate);
  };
  return { host, signals, heard, emit };
}

describe('the signals of `remuda up`', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'])('%s asks for an orderly stop', async (name) => {
    const { heard, emit } = setup();
    await emit(name);
    expect(heard).toEqual([`first ${name}`]);
  });

  it('a second one, of whichever name, asks for a stop at once', async () => {
    const { heard, emit } = setup();
    await emit('SIGINT');
    await emit('SIGTERM');
    await emit('SIGTERM');
    expect(heard).toEqual(['first SIGINT', 'second SIGTERM 143']);
  });

  it('the end of the process that started it counts as one', async () => {
    const { heard, emit } = setup();
    await emit('disconnect');
    expect(heard).toEqual(['first parent gone']);
  });

  it('leaves no listener behind', () => {
    const { host, signals } = setup();
    signals.close();
    expect(host.eventNames()).toEqual([]);
  });
});
