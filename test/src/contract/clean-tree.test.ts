/** What must never be committed: paths of a machine, hosts of a registry, focused or skipped tests without a reason. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** Lines that match, or none. Patterns are written so that this file does not match itself. */
function grep(pattern: string, ...where: string[]): string[] {
  try {
    const out = execFileSync('git', ['grep', '-nIE', pattern, '--', ...where], {
      cwd: root,
      encoding: 'utf8',
    });
    return out.split('\n').filter(Boolean);
  } catch {
    return [];
  }
}

it('no registry host stands in the lock file, a config or a document', () => {
  expect(grep('registry[.]npmjs|deb[.]debian|npmm[i]rror', '.')).toEqual([]);
});

it('no path of a home or work folder stands anywhere', () => {
  expect(grep('(^|[^A-Za-z0-9_.])/(home|root|work)/[a-z]', '.', ':!*.svg')).toEqual([]);
});

it('no test is focused, skipped or to do without a condition', () => {
  expect(grep('[.](only|todo)[(]|(it|test|describe)[.]skip[(]', '*.ts')).toEqual([]);
});
