/** `remuda models validate`: what is wrong with a model as it lies at a path, repository faults and trial runs together. */
import type { ModelSource } from '../harness/harness.js';
import type { TrialOptions } from '../profile/trial-items.js';
import { type RepositoryModel, toModelSource } from '../repository/manifests.js';
import type { BatchVerdict } from './batch-check.js';
import { type Finding, fail } from './finding.js';
import { modelAtPath } from './model-at-path.js';
import { suggestConfig } from './suggest-config.js';
import { validateVersion } from './validate-version.js';

export interface PathValidation {
  model: string;
  version: string | null;
  digest: string | null;
  findings: Finding[];
  batching: BatchVerdict | null;
  /** A model.yaml, where only a file was given. */
  suggestedConfig: string | null;
}

export interface ValidateOptions extends TrialOptions {
  /** Of a model folder; default: the newest. */
  version?: string;
  /** Device that it is tried on. Default cpu. */
  device?: string;
}

/** @throws RemudaError model_not_found when there is no model at the path */
export async function validatePath(path: string, options: ValidateOptions = {}): Promise<PathValidation> {
  const at = await modelAtPath(path, options.version);
  try {
    const found = await validateModel(at.model, at.version, { ...options, bare: at.bare });
    return { ...found, findings: found.findings.map((finding) => withDetail(finding, at.withGivenPaths)) };
  } finally {
    await at.close();
  }
}

/** Findings name files as they were given, not as they were tried. */
export function withDetail(finding: Finding, change: (text: string) => string): Finding {
  return { ...finding, detail: change(finding.detail) };
}

/** The same for a model of a repository that was scanned. */
export async function validateModel(
  model: RepositoryModel,
  version: string | null,
  { bare = false, device = 'cpu', ...trial }: ValidateOptions & { bare?: boolean } = {},
): Promise<PathValidation> {
  const findings = model.problems
    .filter((problem) => problem.version === null || problem.version === version)
    .map(({ message }) => fail('files', message, 'Correct it; the form of a model folder: docs/models.md.'));
  const source = sourceOf(model, version, device, findings);
  const blank = { model: model.name, version, digest: source?.digest ?? null };
  if (!source) return { ...blank, findings, batching: null, suggestedConfig: null };
  const { findings: tried, signature, batching } = await validateVersion(source, trial);
  const suggestedConfig = bare && signature ? suggestConfig(signature, batching) : null;
  return { ...blank, findings: [...findings, ...tried], batching, suggestedConfig };
}

function sourceOf(
  model: RepositoryModel,
  version: string | null,
  device: string,
  findings: Finding[],
): ModelSource | undefined {
  if (version === null || !model.config) return undefined;
  try {
    return toModelSource(model, version, device);
  } catch (error) {
    if (findings.length === 0)
      findings.push(fail('files', (error as Error).message, 'Name one of its versions with --version.'));
    return undefined;
  }
}

export function isValid({ findings }: Pick<PathValidation, 'findings'>): boolean {
  return !findings.some(({ status }) => status === 'fail');
}
