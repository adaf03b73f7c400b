/**
 * Problems of a model as a person needs them. The API lists what the repository says and what each worker says; a fault
 * that both have met is one fault, and is told once.
 */
const OF_WORKER = /^\S+ on worker \S+: /;

/** @param told what is shown of it elsewhere */
export function distinctProblems(problems: readonly string[], told: readonly string[] = []): string[] {
  const kept: string[] = [];
  for (const problem of problems) {
    const fault = faultIn(problem);
    if (told.some((text) => text.includes(fault))) continue;
    if (!kept.some((other) => faultIn(other).includes(fault))) kept.push(problem);
  }
  return kept;
}

/** Without who met it. */
function faultIn(problem: string): string {
  return problem.replace(OF_WORKER, '');
}
