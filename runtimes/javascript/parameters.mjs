// @ts-check
/**
 * Reads the parameters of a function from its source text, because `length` stops at the first default and has no
 * names.
 *
 * It does not parse JavaScript. It finds the parameter list and splits it at the top-level commas, skipping strings,
 * comments and nested brackets. It returns null for a list that it cannot read, and then `length` is used.
 */

/** @typedef {{name: string, optional: boolean, rest: boolean, keys: string[] | null, required?: string[]}} Parameter `keys`: the keys of a
 * destructured object; `required`: the keys without a default */

/**
 * Return the parameters of a function. If its source cannot be read (a built-in), return `length` made-up names.
 *
 * @param {{text: string, length: number}} source
 * @returns {{parameters: Parameter[], required: number, counted: number}} `counted`: the number of parameters without a rest parameter
 */
export function parametersOf({ text, length }) {
  const parameters = parseParameters(text) ??
    Array.from({ length: Math.min(length, 20) }, (_, index) => ({ name: `arg${index + 1}`, optional: false, rest: false, keys: null }));
  return { parameters, required: parameters.filter((one) => !one.optional).length, counted: parameters.filter((one) => !one.rest).length };
}

/** Return the name of a parameter without the underscore that says that the function does not use it: `_expected`. @param {string} name */
export function withoutUnderscore(name) {
  return name.replace(/^_(?=[a-z])/, '');
}

const OPENERS = '([{';
const CLOSERS = ')]}';
const IDENTIFIER = /[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*/uy;

/**
 * @param {string} text source of a function, arrow function or method
 * @returns {Parameter[] | null} null when the text holds no parameters that can be read (native code, a class)
 */
export function parseParameters(text) {
  if (/\{\s*\[native code\]\s*\}\s*$/.test(text) || /^class\b/.test(text)) return null;
  const bare = parseBareArrow(text);
  if (bare) return bare;
  const open = findParameterList(text);
  if (open < 0) return null;
  const close = skipBracket(text, open);
  if (close < 0) return null;
  return splitAtCommas(text.slice(open + 1, close - 1)).map(readParameter);
}

/** `x => …`, `async x => …` @param {string} text @returns {Parameter[] | null} */
function parseBareArrow(text) {
  let at = skipBlank(text, 0);
  let name = identifierAt(text, at);
  if (name === 'async') {
    const after = skipBlank(text, at + name.length);
    const second = identifierAt(text, after);
    if (second && second !== 'function') [at, name] = [after, second];
  }
  if (!name) return null;
  const arrow = skipBlank(text, at + name.length);
  return text.startsWith('=>', arrow) ? [{ name, optional: false, rest: false, keys: null }] : null;
}

/** Return the position of the opening parenthesis; a computed method name may contain others before it. @param {string} text */
function findParameterList(text) {
  for (let at = skipBlank(text, 0); at < text.length; at = skipBlank(text, at)) {
    const c = text[at];
    if (c === '(') return at;
    if (c === '[' || c === '{') at = skipBracket(text, at);
    else if (c === '"' || c === "'" || c === '`') at = skipText(text, at);
    else at++;
    if (at < 0) return -1;
  }
  return -1;
}

/** @param {string} text @param {number} at @returns {number} the position after white space and comments */
export function skipBlank(text, at) {
  for (;;) {
    while (at < text.length && /\s/.test(text[at])) at++;
    if (text.startsWith('//', at)) at = endOr(text, text.indexOf('\n', at));
    else if (text.startsWith('/*', at)) at = endOr(text, text.indexOf('*/', at) + 2, 2);
    else return at;
  }
}

/** @param {string} text @param {number} found @param {number} [floor] */
function endOr(text, found, floor = 0) {
  return found < floor || found < 0 ? text.length : found;
}

/** @param {string} text @param {number} at the position of an opening bracket @returns {number} the position after the closing bracket, -1 if there
 * is none */
export function skipBracket(text, at) {
  let depth = 0;
  while (at < text.length) {
    const c = text[at];
    if (c === '"' || c === "'" || c === '`') at = skipText(text, at);
    else if (c === '/' && (text[at + 1] === '/' || text[at + 1] === '*')) at = skipBlank(text, at);
    else if (c === '/' && startsRegExp(text, at)) at = skipRegExp(text, at);
    else {
      if (OPENERS.includes(c)) depth++;
      if (CLOSERS.includes(c) && --depth === 0) return at + 1;
      at++;
    }
  }
  return -1;
}

/** @param {string} text @param {number} at the position of a quote @returns {number} the position after the closing quote */
export function skipText(text, at) {
  const quote = text[at++];
  while (at < text.length && text[at] !== quote) {
    if (text[at] === '\\') at++;
    if (quote === '`' && text.startsWith('${', at)) {
      at = skipBracket(text, at + 1);
      if (at < 0) return text.length;
    } else at++;
  }
  return at + 1;
}

/** Return whether a slash starts a regular expression; after a value, it is a division. @param {string} text @param {number} at */
function startsRegExp(text, at) {
  const before = text.slice(0, at).trimEnd();
  return before === '' || /[=(,:[{!&|?;+*%~^<>-]$/.test(before);
}

/** @param {string} text @param {number} at */
function skipRegExp(text, at) {
  let inClass = false;
  for (at++; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === '[') inClass = true;
    else if (text[at] === ']') inClass = false;
    else if (text[at] === '/' && !inClass) return at + 1;
  }
  return at;
}

/** @param {string} list @returns {string[]} */
export function splitAtCommas(list) {
  const parts = [];
  let start = 0;
  for (let at = 0; at < list.length; ) {
    const c = list[at];
    if (c === ',') {
      parts.push(list.slice(start, at));
      start = ++at;
    } else if (OPENERS.includes(c)) at = positive(skipBracket(list, at), list.length);
    else if (c === '"' || c === "'" || c === '`') at = skipText(list, at);
    else if (c === '/') at = startsRegExp(list, at) && !'/*'.includes(list[at + 1]) ? skipRegExp(list, at) : Math.max(at + 1, skipBlank(list, at));
    else at++;
  }
  parts.push(list.slice(start));
  return parts.filter((part) => skipBlank(part, 0) < part.length);
}

/** @param {number} found @param {number} otherwise */
function positive(found, otherwise) {
  return found < 0 ? otherwise : found;
}

/** @param {string} part @returns {Parameter} */
function readParameter(part) {
  let at = skipBlank(part, 0);
  const rest = part.startsWith('...', at);
  if (rest) at = skipBlank(part, at + 3);
  const pattern = OPENERS.includes(part[at]);
  const end = pattern ? positive(skipBracket(part, at), part.length) : at + identifierAt(part, at).length;
  const after = skipBlank(part, end);
  const name = part.slice(at, end).replace(/\s+/g, ' ').slice(0, 80);
  const plain = { name, optional: rest || part[after] === '=', rest };
  if (part[at] !== '{') return { ...plain, keys: null };
  const inner = splitAtCommas(part.slice(at + 1, end - 1));
  return { ...plain, keys: keysOf(inner), required: keysOf(inner.filter((one) => !/^[^=]*[^=!<>]=(?!=)/.test(one))) };
}

/** Return the names that a destructured object parameter reads. @param {string[]} parts */
function keysOf(parts) {
  return parts
    .map((part) => {
      const at = skipBlank(part, 0);
      return part.startsWith('...', at) ? '' : identifierAt(part, at) || (/^(["'])(.*?)\1/.exec(part.slice(at))?.[2] ?? '');
    })
    .filter(Boolean);
}

/** @param {string} text @param {number} at */
function identifierAt(text, at) {
  IDENTIFIER.lastIndex = at;
  return IDENTIFIER.exec(text)?.[0] ?? '';
}
