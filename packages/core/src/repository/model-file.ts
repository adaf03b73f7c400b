/**
 * Which file of a version folder is loaded: the variant of the precision that the rule of the device names, else that
 * of the configuration, else model_path. Pure.
 */
import type { AffinityRule, HarnessConfig } from '@remuda/schemas';
import { affinityRules, classOf } from '../devices/affinity-rules.js';

type FileConfig = Pick<HarnessConfig, 'affinity' | 'device' | 'precision' | 'variants' | 'model_path'>;

/** Name in the version folder. */
export function modelFileOf(config: FileConfig, rule?: AffinityRule): string {
  return config.variants[rule?.precision ?? config.precision] ?? config.model_path;
}

/** Every file that some rule of the model loads: a version is complete when they are all there. */
export function modelFilesOf(config: FileConfig): string[] {
  return [...new Set(affinityRules(config).map((rule) => modelFileOf(config, rule)))];
}

/** The first rule that is about a device; undefined: the model does not run there. */
export function ruleFor(config: FileConfig, device: string): AffinityRule | undefined {
  return affinityRules(config).find((rule) => rule.device === device || rule.device === classOf(device));
}
