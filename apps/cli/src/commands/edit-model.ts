/**
 * `remuda models load|unload|alias|…`: one edit of what is wanted of a model, then, with --wait, the way of the fleet
 * there. Which edit a command line means is said by model-edits.ts; the table after it is that of `models status`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { AdminModel, ModelEdited } from '@remuda/schemas';
import type { ApiClient, ModelEdit } from '../api/api-client.js';
import { EXIT } from '../exit-codes.js';
import { withProgress } from '../terminal/progress.js';
import type { Terminal } from '../terminal/terminal.js';
import { actor } from './actor.js';
import { type ApiOptions, apiOf, type CommandContext, printJson } from './context.js';
import { statusLines } from './model-status.js';

export interface EditOptions extends ApiOptions {
  /** Most seconds to wait for the fleet. */
  wait?: number;
}

const ASK_EVERY_MS = 300;

/** @returns failed where a worker could not do what was asked, unfinished where the wait was over first */
export async function editModel(
  model: string,
  edit: ModelEdit,
  options: EditOptions,
  { terminal, config }: CommandContext,
): Promise<number> {
  const api = apiOf(options, config);
  const edited = await api.editModel(edit, actor());
  for (const notice of edited.notices) terminal.note(terminal.noteColours.yellow(notice));
  if (options.wait === undefined) return show(edited, options, terminal);
  const state = await converged(api, model, edited, options.wait, terminal);
  if (options.json) printJson(terminal, state);
  else for (const line of statusLines(state, terminal)) terminal.out(line);
  if (state.convergence.failed.length > 0) return EXIT.failed;
  return state.convergence.done ? EXIT.ok : EXIT.unfinished;
}

function show(edited: ModelEdited, { json }: ApiOptions, terminal: Terminal): number {
  const { model, revision } = edited.deployment;
  if (json) printJson(terminal, edited);
  else
    terminal.out(
      `${model} revision ${revision} is written; \`remuda models status ${model}\` says how far the fleet is`,
    );
  return EXIT.ok;
}

/** The model once the fleet is there, a worker has failed, or the seconds are over. */
async function converged(
  api: ApiClient,
  model: string,
  { deployment }: ModelEdited,
  seconds: number,
  terminal: Terminal,
): Promise<AdminModel> {
  const until = performance.now() + seconds * 1_000;
  return withProgress(terminal, `waiting for the fleet to follow with ${model}`, async (say) => {
    for (;;) {
      const state = await api.adminModel(model);
      const isNew = state.deployment.revision >= deployment.revision;
      if (isNew && state.convergence.done) return state;
      if (performance.now() >= until) return state;
      say(state.convergence.waiting_for.slice(0, 2).join('; '));
      await sleep(ASK_EVERY_MS);
    }
  });
}
