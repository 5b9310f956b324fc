// @ts-check
/** Reads what this runner needs from a `tsconfig.json` that came with the code; esbuild itself reads the rest of it. */
import { posix } from 'node:path';
import { parse } from './parser.mjs';

/** @typedef {import('./bundle.mjs').Files} Files */

const NAMES = ['tsconfig.json', 'jsconfig.json'];
const MOST_STEPS = 10;

/** Return the path of the configuration that applies to the evaluator's own code, or null if none came with the code. @param {Files | null | undefined} files @returns {string | null} */
export function configOf(files) {
  if (!files) return null;
  for (let folder = posix.dirname(files.path); ; folder = posix.dirname(folder)) {
    const found = NAMES.map((name) => posix.join(folder, name)).find((path) => Object.hasOwn(files.texts, path));
    if (found !== undefined || folder === posix.dirname(folder)) return found ?? null;
  }
}

/** Return whether the author's compiler adds the types of decorated members to the program, which esbuild cannot do. @param {Files | null |
 * undefined} files */
export function asksForMetadata(files) {
  const path = configOf(files);
  return path !== null && optionOf(/** @type {Files} */ (files), path, 'emitDecoratorMetadata', MOST_STEPS) === true;
}

/** @param {Files} files @param {string} path @param {string} name @param {number} steps @returns {unknown} */
function optionOf(files, path, name, steps) {
  // read as JavaScript, because comments and trailing commas are allowed
  const config = parse(`(${files.texts[path] ?? 'null'}\n)`)?.body[0]?.expression;
  const own = memberOf(memberOf(config, 'compilerOptions'), name);
  if (own !== undefined || steps === 0) return own?.value;
  const bases = memberOf(config, 'extends');
  const named = (bases?.type === 'ArrayExpression' ? bases.elements : [bases]).map((/** @type {any} */ one) => one?.value).filter((/** @type {unknown} */ one) => typeof one === 'string');
  for (const base of named.reverse()) {
    const file = posix.join(posix.dirname(path), base);
    const found = [file, `${file}.json`].find((one) => Object.hasOwn(files.texts, one));
    const value = found === undefined ? undefined : optionOf(files, found, name, steps - 1);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** @param {any} node the node of an object @param {string} name */
function memberOf(node, name) {
  return node?.properties?.findLast((/** @type {any} */ one) => (one.key?.value ?? one.key?.name) === name)?.value;
}
