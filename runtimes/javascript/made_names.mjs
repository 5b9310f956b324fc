// @ts-check
/** Replaces names that esbuild has invented with the user's names in V8's messages, and recognises code that uses a whole module where it means
 * the default export. */

const BEFORE = 5; // maximum number of lines between the start of an expression and the line of its error
const COLUMNS = 2000;
const MESSAGE = 500;
const NAMED = new Set(['TypeError', 'ReferenceError']);
const IMPORTED = /(?<![\w$.])import_[\w$]+\.[\w$]+|(?<![\w$.])[A-Za-z_$][\w$]*/g;
const REQUIRED = /\(init_[\w$]+\(\.\.\.\) , __toCommonJS\(\.\.\.\)\)|(?<![\w$.])(?:require_[\w$]+|__toESM|__toCommonJS)\(\.\.\.\)/g;
const MOST_EXPORTS = 8;

/** @param {string} type @param {string} message @returns {boolean} whether V8 may have put an expression of the script into it */
export function namesCode(type, message) {
  return NAMED.has(type) && message.length <= MESSAGE;
}

/**
 * Return the user's text for each name that esbuild changed near a line.
 *
 * @param {string[]} lines lines of the compiled script
 * @param {number} line number of the line, from 0
 * @param {(line: number, column: number) => any} entryAt returns the source map's entry for a line and column, both from 0
 * @returns {Map<string, string>}
 */
export function madeNames(lines, line, entryAt) {
  const names = new Map();
  for (let at = Math.max(0, line - BEFORE); at <= line; at++) {
    const text = (lines[at] ?? '').slice(0, COLUMNS);
    for (const { 0: found, index } of text.matchAll(/[A-Za-z_$][\w$]*/g)) {
      const { name, generatedLine, generatedColumn } = entryAt(at, index);
      const module = /(?<![\w$.])import_[\w$]+\.$/.exec(text.slice(0, index))?.[0] ?? '';
      const isPlace = generatedLine === at && generatedColumn === index; // if the user wrote the member, it has an entry of its own in the source map
      if (isPlace ? name && name !== found : module) names.set(module + found, isPlace ? name : found);
    }
  }
  return names;
}

/**
 * Return V8's message in the form that it would have if the code had not been bundled.
 *
 * @param {string} message
 * @param {Map<string, string>} names the result of `madeNames`
 * @param {string} written the user's code at the position of the error
 */
export function withOwnNames(message, names, written) {
  return message
    .replace(REQUIRED, 'require(...)')
    .replace(/\(void 0\)/g, written || '(void 0)')
    .replace(IMPORTED, (found) => names.get(found) ?? found)
    .replace(/\(0 , ([\w$.]+)\)/g, '$1');
}

/**
 * Return a hint if code calls a whole ES module, because it means the default export.
 *
 * @param {string} message V8's message, with the names of the compiled script
 * @param {string} script
 * @param {string} near the line that threw the error, and the lines above it
 * @returns {string | null}
 */
export function moduleHint(message, script, near) {
  const name = /^\(?([A-Za-z_$][\w$]*).* is not (?:a function|a constructor|iterable)/.exec(message)?.[1];
  if (name === undefined) return null;
  const word = name.replace(/\$/g, '\\$&');
  const made = message.includes('__toCommonJS(') ? /\(init_[\w$]+\(\), __toCommonJS\(([\w$]+)\)\)/.exec(near)
    : new RegExp(`(?<![\\w$.])${word}\\b[^=;\\n]{0,200}= [^;\\n]{0,200}\\(init_[\\w$]+\\(\\), (?:__toCommonJS\\()?([\\w$]+_exports\\d*)\\)`).exec(script);
  const at = made ? script.indexOf(`__export(${made[1]}, {`) : -1;
  if (at < 0) return null;
  const exported = [...script.slice(at, script.indexOf('});', at)).matchAll(/^\s+"?([\w$-]+)"?: \(\) =>/gm)].map((one) => one[1]);
  const path = /^ *\/\/ (?:.*\/)?node_modules\/((?:@[^/\n]+\/)?[^/\n]+)/.exec(script.slice(script.lastIndexOf('// node_modules/', at), at))?.[1];
  if (path === undefined) return null;
  if (exported.includes('default')) return `${path} is an ES module: import it, or use require('${path}').default`;
  return `${path} is an ES module: take what you need of its exports, ${exported.slice(0, MOST_EXPORTS).join(', ')}`;
}
