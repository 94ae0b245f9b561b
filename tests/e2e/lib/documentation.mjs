// The code in the documentation.

import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { root } from './server.mjs';

const kPages = ['README.md', 'HACKING.md', 'models/README.md'].concat(
  readdirSync(path.join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
);

export const pages = new Map(
  kPages.map((page) => [page, readFileSync(path.join(root, page), 'utf8')]),
);

// All blocks: {page, line, language, number, text, mark}. `number` counts the blocks of one language
// on a page, from 1. `mark` is the comment in the line before the block:
//
//   <!-- not run: REASON -->   it is not executed
//   <!-- run by FILE -->       FILE executes it, or the same
export const blocks = kPages.flatMap((page) => {
  const out = [];
  const counts = new Map();
  const lines = pages.get(page).split('\n');
  for (let at = 0; at < lines.length; ++at) {
    const begin = /^```(\w*)$/.exec(lines[at]);
    if (!begin) continue;
    const end = lines.indexOf('```', at + 1);
    const [, language] = begin;
    const number = (counts.get(language) ?? 0) + 1;
    counts.set(language, number);
    out.push({
      page,
      line: at + 1,
      language,
      number,
      text: `${lines.slice(at + 1, end).join('\n')}\n`,
      mark: /^<!-- (.*) -->$/.exec(lines[at - 1] ?? '')?.[1],
    });
    at = end;
  }
  return out;
});

export const block_at = (page, language, number) =>
  blocks.find(
    (block) => block.page === page && block.language === language && block.number === number,
  ).text;
