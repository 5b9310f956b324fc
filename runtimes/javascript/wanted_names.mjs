// @ts-check
/** Lists the names that an evaluator's module is asked for: usual names of entries, and names that the code declares. */
import { DIALECTS } from './dialects/table.mjs';
import { isIdentifier } from './offers.mjs';

/** The entry that stands for all evaluators of a file. */
export const EVERY = '*';
export const MOST_NAMES = 50;

/** Return the names by which to look for an entry. @param {string | null} entry @param {string} code @param {string} [pasted] the code as it was
 * pasted */
export function wantedNames(entry, code, pasted = code) {
  const named = entry !== null && isIdentifier(entry) ? [entry] : [];
  const any = entry === EVERY || DIALECTS.some((one) => one.takesAnyName?.test(code)) ? declaredNames(code).slice(0, MOST_NAMES) : [];
  const listed = DIALECTS.flatMap((one) => one.listed?.(pasted) ?? []).map((one) => one.name);
  const taken = new Set([...KEYWORDS, ...declaredNames(code)]);
  const methods = METHODS_OF.test(code) ? [...code.matchAll(METHOD)].map((one) => one[1]).filter((one) => !taken.has(one) && !(one in globalThis)).slice(0, MOST_NAMES) : [];
  const made = listed.includes('') ? [...pasted.matchAll(CONSTANT)].map((one) => one[1]).slice(0, MOST_NAMES) : [];
  const classes = [...code.matchAll(CLASS)].map((one) => one[1]).slice(0, MOST_NAMES);
  return [...new Set([...usualNames(), ...named, ...classes, ...methods, ...any, ...listed.filter(isIdentifier), ...made])];
}

/** Matches the export of an object. */
const METHODS_OF = /^export\s+(?:default\s*\{|(?:const|let|var)\s[^=\n]{1,200}=\s*\{)/m;
/** Matches the head of a method, or a function under a key, at the start of a line. */
const METHOD = /^[ \t]{1,40}(?:async[ \t]{1,9})?([A-Za-z_$][\w$]{0,99})[ \t]{0,9}(?:\([^()]{0,300}\)[^;()\n]{0,100}\{|:[ \t]{0,9}(?:async\b|function\b|\())/gm;

/** Words that can be the name of a property, but not of a variable in a module. */
const KEYWORDS = [
  'arguments', 'await', 'break', 'case', 'catch', 'class', 'const', 'continue', 'debugger', 'default', 'delete', 'do', 'else', 'enum', 'eval', 'export',
  'extends', 'false', 'finally', 'for', 'function', 'if', 'implements', 'import', 'in', 'instanceof', 'interface', 'let', 'new', 'null', 'package',
  'private', 'protected', 'public', 'return', 'static', 'super', 'switch', 'this', 'throw', 'true', 'try', 'typeof', 'var', 'void', 'while', 'with', 'yield',
];

/** Matches a class at module level. */
const CLASS = /^(?:export\s+)?(?:default\s+)?class\s+([A-Za-z_$][\w$]*)/gm;
/** Matches a module-level variable; it may be in a list whose members the code does not write out. */
const CONSTANT = /^(?:export\s+)?(?:const|let|var)\s+([A-Za-z_$][\w$]*)/gm;

/** @returns {string[]} the names by which functions of any dialect are looked for */
function usualNames() {
  return [...new Set(DIALECTS.flatMap((one) => one.entries))].sort();
}

/** @param {string} code @returns {string[]} names of functions that the code declares, at any depth */
export function declaredNames(code) {
  const declared = code.matchAll(/^[ \t]*(?:export\s+)?(?:default\s+)?(?:async\s+)?(?:function\s*\*?\s*|(?:const|let|var)\s+(?=[\w$]+\s*(?::[^=\n]{1,200})?=\s*(?:async\b|function\b|\(|[\w$]+\s*=>)))([\w$]+)/gm);
  return [...declared].map((match) => match[1]);
}
