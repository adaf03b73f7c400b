/** Findings of doctor are those of core: `remuda models validate` shows them in the same way. */
export { type Finding, fail, ok, warn } from '@remuda/core/validation/finding';
