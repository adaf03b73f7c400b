// Owns the decision whether packages must be installed and sources built again. Invariant: a stamp is written only
// after the work it stands for succeeded, with the value computed before that work began.
// Manifests are compared by content (few, and a checkout must not count as a change); sources by size and time
// (many, and a needless build is cheap).
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

/** The workspace's folders, as pnpm-workspace.yaml lists them: `folder` or `folder/*`. */
export function workspaceFolders(root) {
  return workspacePatterns(root).flatMap((pattern) => {
    if (!pattern.endsWith('/*')) return existsSync(join(root, pattern, 'package.json')) ? [pattern] : [];
    const parent = pattern.slice(0, -2);
    return entriesOf(join(root, parent))
      .map((entry) => `${parent}/${entry.name}`)
      .filter((folder) => existsSync(join(root, folder, 'package.json')));
  });
}

/** Changes with pnpm-lock.yaml, pnpm-workspace.yaml and every package.json, and with the Node that installs. */
export function manifestStamp(root) {
  const hash = createHash('sha256').update(`${process.platform} ${process.arch}\n`);
  const manifests = ['', ...workspaceFolders(root)].map((folder) => join(folder, 'package.json'));
  for (const path of ['pnpm-lock.yaml', 'pnpm-workspace.yaml', '.npmrc', ...manifests]) {
    hash
      .update(`${path}\n`)
      .update(readOrEmpty(join(root, path)))
      .update('\0');
  }
  return hash.digest('hex');
}

/** Changes with any source or tsconfig of the workspace, and with what was installed. */
export function sourceStamp(root) {
  const hash = createHash('sha256').update(manifestStamp(root));
  for (const name of ['tsconfig.json', 'tsconfig.base.json']) hash.update(factsOf(root, name));
  for (const folder of workspaceFolders(root)) {
    hash.update(factsOf(root, `${folder}/tsconfig.json`));
    for (const path of filesUnder(root, `${folder}/src`)) hash.update(factsOf(root, path));
  }
  return hash.digest('hex');
}

/** Whether node_modules stands, for the root and for each package that depends on something. */
export function isInstalled(root) {
  if (!existsSync(join(root, 'node_modules/.modules.yaml'))) return false;
  return workspaceFolders(root).every((folder) => {
    const { dependencies = {}, devDependencies = {} } = JSON.parse(
      readOrEmpty(join(root, folder, 'package.json')),
    );
    const needed = Object.keys({ ...dependencies, ...devDependencies }).length > 0;
    return !needed || existsSync(join(root, folder, 'node_modules'));
  });
}

/** Whether each package that has sources also has a build. */
export function isBuilt(root) {
  return workspaceFolders(root).every((folder) => {
    const builds = existsSync(join(root, folder, 'tsconfig.json')) && existsSync(join(root, folder, 'src'));
    return !builds || existsSync(join(root, folder, 'dist/.tsbuildinfo'));
  });
}

export function readStamps(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return {};
  }
}

export function writeStamps(path, stamps) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.${process.pid}`, `${JSON.stringify(stamps, null, 2)}\n`);
  renameSync(`${path}.${process.pid}`, path);
}

function workspacePatterns(root) {
  const lines = readOrEmpty(join(root, 'pnpm-workspace.yaml')).split('\n');
  const begin = lines.findIndex((line) => /^packages:\s*$/.test(line)) + 1;
  const patterns = [];
  for (const line of lines.slice(begin)) {
    if (/^\S/.test(line)) break;
    const item = /^\s+-\s+['"]?([^'"#\s]+)/.exec(line);
    if (item) patterns.push(item[1]);
  }
  return patterns;
}

function* filesUnder(root, folder) {
  for (const entry of entriesOf(join(root, folder))) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) yield* filesUnder(root, path);
    else yield path;
  }
}

function entriesOf(path) {
  try {
    return readdirSync(path, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return [];
  }
}

function factsOf(root, path) {
  const facts = statSync(join(root, path), { throwIfNoEntry: false });
  return `${path} ${facts?.size} ${facts?.mtimeMs}\n`;
}

function readOrEmpty(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
