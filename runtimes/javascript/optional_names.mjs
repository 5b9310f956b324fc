// @ts-check
/** Reads from TypeScript which arguments of a function are optional (`name?`) and which are required (`name: string`), by its parameters and their
 * types. */
import { skipBlank, skipBracket, splitAtCommas } from './parameters.mjs';

const MOST_CHARS = 200_000;
const MEMBER = /(?:^|[{;,\n])\s*(?:readonly\s+)?(["']?)([\w$]+)\1(\?)?\s*:\s*([^;,{}\n]{0,200})/g;
/** Matches types whose values may be missing. */
const NOTHING = /\b(?:any|null|undefined|unknown)\b/;

/** @typedef {{optional: Set<string>, required: Set<string>}} Names */

/** Return the optional and the required parameters of a function, and properties of their types. @param {string} code the pasted code @param {string}
 * name @returns {Names} */
export function optionalNames(code, name) {
  const found = /** @type {Names} */ ({ optional: new Set(), required: new Set() });
  if (code.length > MOST_CHARS) return found;
  const own = name.replace(/\$/g, '\\$&');
  const head = name === 'default' ? /\bexport\s+default\s/ : new RegExp(`\\b(?:function\\s*\\*?\\s*|(?:const|let|var)\\s+)${own}(?![\\w$])`);
  const at = code.search(head);
  const open = at < 0 ? -1 : code.indexOf('(', at);
  const close = open < 0 ? -1 : skipBracket(code, open);
  if (close < 0) return found;
  const seen = new Set();
  addOf(code.slice(at, open), code, found, seen); // for a constant, its type annotation
  for (const part of splitAtCommas(code.slice(open + 1, close - 1))) {
    const from = skipBlank(part, 0);
    const end = part[from] === '{' ? skipBracket(part, from) : from + (/^[\w$]+/.exec(part.slice(from))?.[0].length ?? 0);
    if (end < 0) continue;
    const rest = part.slice(end).trimStart();
    if (rest.startsWith('?')) found.optional.add(part.slice(from, end));
    else if (rest.startsWith(':') && part[from] !== '{' && !NOTHING.test(rest)) found.required.add(part.slice(from, end));
    addOf(rest, code, found, seen);
  }
  return found;
}

/** Add the properties of a type. @param {string} type @param {string} code @param {Names} found @param {Set<string>} seen names of types that were
 * read before */
function addOf(type, code, found, seen) {
  for (const [, , name, mark, of] of type.matchAll(MEMBER)) {
    if (mark) found.optional.add(name);
    else if (!NOTHING.test(of)) found.required.add(name);
  }
  for (const [name] of type.matchAll(/[A-Za-z_$][\w$]*/g)) {
    if (seen.has(name)) continue;
    seen.add(name);
    const declared = new RegExp(`\\b(?:interface|type)\\s+${name.replace(/\$/g, '\\$&')}(?![\\w$])[^{;]{0,500}\\{`).exec(code);
    if (declared === null) continue;
    const brace = declared.index + declared[0].length - 1;
    const end = skipBracket(code, brace);
    addOf(declared[0] + code.slice(brace + 1, end < 0 ? brace + 1 : end), code, found, seen);
  }
}
