/** What doctor, or a validation, says about one thing: how it is, and what to do where it is not as it should be. */
export interface Finding {
  check: string;
  status: 'ok' | 'warn' | 'fail';
  detail: string;
  /** What to do; with every warn and fail. */
  remedy?: string;
}

export const ok = (check: string, detail: string): Finding => ({ check, status: 'ok', detail });
export const warn = (check: string, detail: string, remedy: string): Finding => ({
  check,
  status: 'warn',
  detail,
  remedy,
});
export const fail = (check: string, detail: string, remedy: string): Finding => ({
  check,
  status: 'fail',
  detail,
  remedy,
});
