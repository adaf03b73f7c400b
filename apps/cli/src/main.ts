/**
 * Entry of `remuda`. Everything that reaches a person goes through one Terminal, and every command ends as an exit code
 * (exit-codes.ts); this file only ties the two to the process. Commands: program.ts.
 */
import { readConfig, wantsColour } from './config.js';
import { runProgram } from './program.js';
import { processTerminal } from './terminal/terminal.js';

const code = await runProgram(process.argv.slice(2), {
  terminal: processTerminal(process.stdout, process.stderr, (stream) => wantsColour(process.env, stream)),
  config: () => readConfig(process.env, process.cwd()),
  stdin: process.stdin,
});
process.exit(code);
