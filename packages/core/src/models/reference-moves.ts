/**
 * Which references of a model (`default`, aliases) the steward moves now. Pure: from what live workers say they hold,
 * the desired state and what is served.
 *
 *   somebody has the old version ready   → moves when the new one is ready in every place where the old one is, and
 *                                          has failed nowhere; till then the old one goes on serving
 *   nobody has the old version ready     → moves when anybody has the new one ready, or can load it on demand
 *   the old version is lost everywhere   → back to the best that is ready
 *   the alias was taken away             → dropped
 *
 * What a reference is meant to lead to: target-refs.ts. Who calls this: steward.ts.
 */
import {
  DEFAULT_REF,
  type DeviceClass,
  type HarnessConfig,
  type LoadedModel,
  type ModelDeployment,
  type ServingState,
} from '@remuda/schemas';
import { classOf } from '../devices/affinity-rules.js';
import { targetRefs } from './target-refs.js';

/** A version on a device, as a live worker that is not draining says. */
export interface VersionCopy extends Pick<LoadedModel, 'version' | 'device' | 'state' | 'reason'> {
  workerId: string;
  breaker?: LoadedModel['breaker'];
}

export interface MoveFacts {
  deployment: ModelDeployment;
  /** undefined: the fleet knows no configuration yet, so only aliases can be followed. */
  config: Pick<HarnessConfig, 'version_policy' | 'load_mode'> | undefined;
  serving: ServingState | undefined;
  copies: readonly VersionCopy[];
  /** A worker has just begun and may not yet have said all that it has. */
  starting: boolean;
  /** Device classes that a version may run on; undefined: not known, so all. */
  allowedOn?(version: string): readonly DeviceClass[] | undefined;
}

export interface Move {
  ref: string;
  /** null: it led nowhere. */
  from: string | null;
  /** null: it leads nowhere from now on. */
  to: string | null;
  /** held: the new version has failed, so the reference stays. */
  kind: 'moved' | 'moved_back' | 'dropped' | 'held';
  reason: string;
}

export function decideMoves(facts: MoveFacts): Move[] {
  const { deployment, serving } = facts;
  if (!deployment.registered) return [];
  const dropped = droppedRefs(facts);
  const versions = versionsOf(facts.copies);
  // Nobody who lives knows the model: that says nothing about its files.
  if (versions.length === 0) return dropped;
  const targets = targetsOf(facts, versions);
  const refs = new Set([...targets.keys(), ...Object.keys(serving?.refs ?? {})]);
  for (const { ref } of dropped) refs.delete(ref);
  const moves = [...refs].map((ref) => decideRef(facts, ref, targets.get(ref)));
  return [...dropped, ...moves.filter((move) => move !== undefined)];
}

function droppedRefs({ deployment, serving }: MoveFacts): Move[] {
  return Object.entries(serving?.refs ?? {})
    .filter(([ref]) => ref !== DEFAULT_REF && !Object.hasOwn(deployment.aliases, ref))
    .map(([ref, { version }]) => ({
      ref,
      from: version,
      to: null,
      kind: 'dropped',
      reason: `alias ${ref} was removed`,
    }));
}

/** Versions that any of the workers has reported, lowest first. */
function versionsOf(copies: readonly VersionCopy[]): string[] {
  return [...new Set(copies.map(({ version }) => version))].sort((a, b) => Number(a) - Number(b));
}

function targetsOf({ config, deployment }: MoveFacts, versions: readonly string[]): Map<string, string> {
  if (config) return targetRefs({ config, deployment, versions });
  const targets = targetRefs({
    config: { version_policy: 'latest', load_mode: 'eager' },
    deployment,
    versions,
  });
  // Without its configuration nobody knows which versions the policy keeps.
  targets.delete(DEFAULT_REF);
  return targets;
}

function decideRef(facts: MoveFacts, ref: string, target: string | undefined): Move | undefined {
  const from = facts.serving?.refs[ref]?.version ?? null;
  if (from === target) return undefined;
  if (target !== undefined) {
    const servedAt = from === null ? [] : readyCopies(facts, from);
    const move = servedAt.length > 0 ? handOver(facts, servedAt, target) : takeUp(facts, from, target);
    if (move?.kind === 'moved') return { ref, from, to: target, ...move };
    if (servedAt.length > 0) return move && { ref, from, to: target, ...move };
  }
  return moveBack(facts, ref, from, target) ?? heldIfFailed(facts, ref, from, target);
}

type Verdict = Pick<Move, 'kind' | 'reason'>;

/** The old version serves: the new one must be as good wherever that is. */
function handOver(facts: MoveFacts, servedAt: readonly VersionCopy[], target: string): Verdict | undefined {
  const failure = failureOf(facts, target);
  if (failure) return { kind: 'held', reason: failure };
  const ready = readyCopies(facts, target);
  if (ready.length === 0) return undefined;
  const places = new Set(ready.map(placeOf));
  const allowed = facts.allowedOn?.(target);
  const lacking = servedAt.filter(
    (copy) => !places.has(placeOf(copy)) && (allowed?.includes(classOf(copy.device)) ?? true),
  );
  if (lacking.length > 0) return undefined;
  return { kind: 'moved', reason: `ready on ${counted(ready)}, wherever version ${servedAt[0]?.version} is` };
}

/** Nobody has the old version ready: any worker that can answer is better than none. */
function takeUp(facts: MoveFacts, from: string | null, target: string): Verdict | undefined {
  const before = from === null ? '' : `, and version ${from} is ready nowhere`;
  const ready = readyCopies(facts, target);
  if (ready.length > 0) return { kind: 'moved', reason: `ready on ${counted(ready)}${before}` };
  const { deployment, config, copies } = facts;
  const mode = deployment.load_mode ?? config?.load_mode;
  const loadable = copies.some(({ version, state }) => version === target && state !== 'failed');
  if (mode === 'on_demand' && loadable && deployment.loads[target] !== 'unloaded') {
    return { kind: 'moved', reason: `loaded on demand${before}` };
  }
  return undefined;
}

/** For a reference whose version is lost, or a `default` that never led anywhere and cannot lead where it should. */
function moveBack(
  facts: MoveFacts,
  ref: string,
  from: string | null,
  target: string | undefined,
): Move | undefined {
  const stranded =
    from === null
      ? ref === DEFAULT_REF && target !== undefined && isLost(facts, target)
      : isLost(facts, from);
  if (!stranded || facts.starting) return undefined;
  const to = bestReady(facts, ref);
  if (to === undefined) return undefined;
  const lost = from ?? target;
  return { ref, from, to, kind: 'moved_back', reason: `${lossOf(facts, lost as string)}; ${to} is ready` };
}

function heldIfFailed(
  facts: MoveFacts,
  ref: string,
  from: string | null,
  target: string | undefined,
): Move | undefined {
  const failure = target === undefined ? undefined : failureOf(facts, target);
  return failure === undefined ? undefined : { ref, from, to: target ?? null, kind: 'held', reason: failure };
}

/** The one before, else the newest. */
function bestReady({ deployment, serving, copies }: MoveFacts, ref: string): string | undefined {
  const ready = versionsOf(copies.filter(({ state }) => state === 'ready')).filter(
    (version) => deployment.loads[version] !== 'unloaded',
  );
  const previous = serving?.refs[ref]?.previous;
  return previous != null && ready.includes(previous) ? previous : ready.at(-1);
}

/** No worker has it, or can have it. */
function isLost({ copies }: MoveFacts, version: string): boolean {
  return copies.every((copy) => copy.version !== version || copy.state === 'failed');
}

function lossOf(facts: MoveFacts, version: string): string {
  return failureOf(facts, version) ?? `no worker has version ${version} any more`;
}

function failureOf({ copies }: MoveFacts, version: string): string | undefined {
  const failed = copies.find((copy) => copy.version === version && copy.state === 'failed');
  if (!failed) return undefined;
  const { device, workerId, reason } = failed;
  return `version ${version} failed on ${device} of ${workerId}: ${reason ?? 'no reason given'}`;
}

function readyCopies({ copies }: MoveFacts, version: string): VersionCopy[] {
  return copies.filter((copy) => copy.version === version && copy.state === 'ready');
}

function placeOf({ workerId, device }: VersionCopy): string {
  return `${workerId} ${device}`;
}

function counted(copies: readonly VersionCopy[]): string {
  return copies.length === 1 ? '1 device' : `${copies.length} devices`;
}
