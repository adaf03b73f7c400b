/** How a command ends, for scripts. Shown by `remuda --help`. */
export const EXIT = {
  ok: 0,
  /** The answer is a failure: a failed request, a wrong sample, a finding of doctor, an error of the API. */
  failed: 1,
  /** The command line or the environment is not right. */
  usage: 2,
  /** No API answers at the address. */
  unreachable: 3,
  /** The request had not ended when the wait was over; it goes on. */
  unfinished: 4,
  interrupted: 130,
  terminated: 143,
} as const;

export const EXIT_HELP = `Exit codes:
  0  done
  1  the answer is a failure: a failed request, a wrong sample, a "fail" of doctor, an error of the API
  2  the command line or the environment is not right
  3  no API answers at the address
  4  the request had not ended when the wait was over; it goes on
  130, 143  interrupted before it was done (Ctrl-C, SIGTERM)`;
