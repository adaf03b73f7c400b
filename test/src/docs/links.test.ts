/** Every link of a page to something in the repository leads there, anchors included. */
import { existsSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { pages, readPage, root } from './documents.js';

/** Targets of [text](target) and src="target", outside of code. */
function targetsOf(page: string): string[] {
  const prose = page.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, '');
  const found = prose.matchAll(/\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)|\b(?:src|srcset|href)="([^"]+)"/g);
  return [...found].map((match) => (match[1] ?? match[2]) as string);
}

/** The anchors that GitHub gives to headings. */
function anchorsOf(page: string): string[] {
  const headings = page.replace(/^```[\s\S]*?^```/gm, '').matchAll(/^#{1,6} (.+)$/gm);
  return [...headings].map(([, text]) =>
    (text as string)
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function faultOf(page: string, target: string): string | undefined {
  if (/^[a-z]+:/.test(target)) return undefined;
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? join(root, page) : join(root, dirname(page), path);
  if (relative(root, file).startsWith('..')) return `${target} leads out of the repository`;
  if (!existsSync(file)) return `${target} is not there`;
  if (anchor === undefined || !file.endsWith('.md') || statSync(file).isDirectory()) return undefined;
  return anchorsOf(readPage(relative(root, file))).includes(anchor)
    ? undefined
    : `${target}: no such heading`;
}

describe('links lead somewhere', () => {
  for (const page of pages()) {
    it(page, () => {
      const faults = targetsOf(readPage(page)).map((target) => faultOf(page, target));
      expect(faults.filter(Boolean)).toEqual([]);
    });
  }
});
