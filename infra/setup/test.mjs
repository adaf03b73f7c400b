// `npm test`: set-up, then each check as a step, then vitest against a Redis of its own. `npm test -- PATTERN` hands
// PATTERN to vitest. The last line is `N passed, M failed`: a step counts as one, and so does each vitest test.
// Invariant: the user's Redis is never written to, unless no server can be had; then under a random key prefix only.
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';
import { killMarked, runCommand, stopOnSignal } from './run-command.mjs';
import { step } from './step.mjs';

const reportPath = join(root, '.remuda/test-report.json');
const count = { passed: 0, failed: 0, skipped: 0 };
const runId = randomBytes(6).toString('hex');
let releaseRedis = async () => {};
let testTmpdir;

stopOnSignal(cleanUp);
if (await check('set-up', () => prepare())) await checkEverything();
console.log(summary());
process.exit(count.failed > 0 ? 1 : 0);

async function checkEverything() {
  await check('format and lint', () => run(bin('biome'), ['check', '--error-on-warnings', '.']));
  await check('types', checkTypes);
  await check('schemas', checkSchemas);
  const redisEnv = await check('redis', provideRedis);
  if (!redisEnv) return;
  try {
    await runVitest(redisEnv);
  } finally {
    await cleanUp();
  }
}

async function checkTypes() {
  await run(bin('tsc'), ['-b']);
  await run(bin('tsc'), ['-p', 'tsconfig.tests.json']);
}

async function checkSchemas() {
  const generator = join(root, 'packages/schemas/dist/generate.js');
  if (!existsSync(generator)) throw new Error('packages/schemas/dist/generate.js is missing');
  await run(process.execPath, [generator, '--check']);
}

async function provideRedis() {
  const launcher = await import('../dist/redis-launcher.js');
  const { REDIS_URL: theirs, ...env } = process.env;
  try {
    const redis = await launcher.startPrivateRedis({ env, log: console.log, allowInstall: true });
    releaseRedis = () => redis.stop();
    return { ...env, REMUDA_TEST_REDIS_URL: redis.url };
  } catch (error) {
    if (!theirs) throw error;
    return borrowRedis(launcher, theirs, env);
  }
}

async function borrowRedis(launcher, url, env) {
  const prefix = `remuda-test-${runId}`;
  await launcher.ensureRedis({ env: { REDIS_URL: url }, dataDir: '', log: console.log, allowInstall: false });
  console.log(`no Redis of our own to be had: using REDIS_URL with the key prefix ${prefix}`);
  releaseRedis = () => launcher.deleteKeysContaining(url, prefix);
  return { ...env, REMUDA_TEST_REDIS_URL: url, REMUDA_TEST_KEY_PREFIX: prefix };
}

async function runVitest(env) {
  rmSync(reportPath, { force: true });
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportPath}`];
  const args = ['run', ...reporters, ...process.argv.slice(2)];
  testTmpdir = mkdtempSync(join(realpathSync(tmpdir()), 'remuda-test-'));
  const testEnv = { ...env, TMPDIR: testTmpdir, REMUDA_TEST_RUN: runId };
  const { code } = await runCommand(bin('vitest'), args, { cwd: root, env: testEnv, inherit: true });
  const tests = readReport();
  count.passed += tests.passed;
  count.failed += tests.failed;
  count.skipped += tests.skipped;
  if (code !== 0 && tests.failed === 0) {
    count.failed++;
    console.log(`vitest ended with code ${code}, and its report names no failed test`);
  }
}

/** A file that could not be loaded has no tests: it counts as one failure. */
function readReport() {
  let report;
  try {
    report = JSON.parse(readFileSync(reportPath, 'utf8'));
  } catch (error) {
    console.log(`vitest left no report: ${error.message}`);
    return { passed: 0, failed: 1, skipped: 0 };
  }
  const broken = report.testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  );
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + broken.length,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

async function cleanUp() {
  const left = killMarked(`REMUDA_TEST_RUN=${runId}`, testTmpdir);
  if (left.length > 0) console.log(`ended what tests left running:\n  ${left.join('\n  ')}`);
  if (testTmpdir) rmSync(testTmpdir, { recursive: true, force: true, maxRetries: 3 });
  await releaseRedis();
}

/** One step: its result (true when it gives none), or undefined after its failure was printed in full. */
async function check(title, work) {
  try {
    const result = await step(title, work);
    count.passed++;
    return result ?? true;
  } catch (error) {
    count.failed++;
    console.log(error.message);
    return undefined;
  }
}

async function run(command, args) {
  const { code, output } = await runCommand(command, args, { cwd: root });
  if (code !== 0) throw new Error(output.trim() || `${command} ended with code ${code}`);
}

function bin(name) {
  return join(root, 'node_modules/.bin', name);
}

function summary() {
  const { passed, failed, skipped } = count;
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}
