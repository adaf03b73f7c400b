/** How a command ends, for scripts. Shown by `remuda --help`. */
export const EXIT = {
  ok: 0,
  /** The answer is a failure: a failed request, a wrong sample, a finding of doctor, an error of the API. */
  failed: 1,
  /** The command line, the environment, or the input of a bulk job is not right: nothing was run. */
  usage: 2,
  /** No API answers at the address. */
  unreachable: 3,
  /** The request had not ended when the wait was over, it goes on; or a bulk job was paused by somebody else or a full disk. */
  unfinished: 4,
  /** The bulk job is done, and some of its rows have an error in place of an answer. */
  partly: 5,
  interrupted: 130,
  terminated: 143,
} as const;

export const EXIT_HELP = `Exit codes:
  0  done
  1  the answer is a failure: a failed request or bulk job, a wrong sample, a "fail" of doctor, an error of the API
  2  the command line, the environment, or the input of a bulk job is not right: nothing was run
  3  no API answers at the address
  4  the request had not ended when the wait was over, it goes on; a bulk job was paused by something else
  5  the bulk job is done, but some rows failed: they stand in the errors file
  130, 143  interrupted before it was done (Ctrl-C, SIGTERM)`;
