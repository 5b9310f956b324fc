// @ts-check
/**
 * Finds an evaluator that is inside other code: in a function that returns it, or in a string. This module is used only if the code has no entry of
 * its own, so it costs other evaluators nothing.
 */
import { declaredNames } from './wanted_names.mjs';
import { skipBlank, skipBracket, skipText } from './parameters.mjs';

/** @typedef {{code: string, note: string}} Held the code to run, with every line at its original line number, and a note on what was found */

const FACTORY = /^(?:export\s+)?(?:default\s+)?(?:function\s+([\w$]+)\s*|(?:const|let|var)\s+([\w$]+)\s*=\s*(?:function\s*)?)(?=\()/gm;
const ENTRY = /\b(?:evaluate|main|performEval|perform_eval|handler|get_assert|exec_evaluation|validate)\b\s*(?:\(|=(?!=))/;
const FUNCTION = /=>|\bfunction\b/;
const MOST_CHARS = 200_000;

/** Return the evaluator inside the code, or null if there is none, or there are several. @param {string} code @returns {Held | null} */
export function findHeld(code) {
  if (code.length > MOST_CHARS || !FUNCTION.test(code)) return null;
  return fromFactory(code) ?? fromText(code);
}

/** @param {string} code @returns {Held | null} */
function fromFactory(code) {
  const found = [];
  for (const match of code.matchAll(FACTORY)) {
    const open = match.index + match[0].length;
    const close = skipBracket(code, open);
    if (close < 0 || !takesNothing(code.slice(open + 1, close - 1))) continue;
    const body = bodyAt(code, close);
    if (body !== null && FUNCTION.test(body)) found.push({ name: match[1] ?? match[2], body });
  }
  if (found.length !== 1) return null;
  const [{ name, body }] = found;
  const names = [...new Set(declaredNames(body))].filter((one) => one !== name && one !== 'evaluate').slice(0, 50);
  const known = JSON.stringify([...names, 'evaluate']);
  const pick = `((r) => { const k = ${known}; const l = (typeof r === 'function' ? [[r.name, r]] : Array.isArray(r) ? r.map((f) => [f?.name, f]) : Object.entries(r ?? {})).filter(([, f]) => typeof f === 'function'); const o = Object.fromEntries(l.filter(([n]) => k.includes(n))); if (l.length === 1 && !k.includes(l[0][0])) o.evaluate = l[0][1]; return o; })`;
  return { code: `${code}\n;var { ${[...names, 'evaluate'].join(', ')} } = ${pick}(${name}());`, note: `the evaluator is what ${name}() returns` };
}

/** Return whether a function with this list of parameters can be called without arguments. @param {string} list */
function takesNothing(list) {
  return list.trim() === '' || /^\s*[\w$]+\?\s*:[^,]*$/.test(list) || /^[\s]*(?:\{[^{}]*\}|[\w$]+)\s*(?::[^=]*)?=(?!>)[^,]*$/.test(list);
}

/** Return the body of a function after its parameters, which in an arrow function may be an expression. @param {string} code @param {number} at @returns {string | null} */
function bodyAt(code, at) {
  const arrow = /^\s*(?::[^={]*)?=>\s*/.exec(code.slice(at, at + 500));
  const start = arrow ? at + arrow[0].length : code.indexOf('{', at);
  if (start < 0) return null;
  if (code[start] !== '{') return arrow ? code.slice(start) : null;
  const end = skipBracket(code, start);
  const body = end < 0 ? '' : code.slice(start + 1, end - 1);
  return /\breturn\b/.test(body) ? body : null;
}

/** Return the only string in the code that is itself an evaluator. @param {string} code @returns {Held | null} */
function fromText(code) {
  const found = [];
  for (let at = 0; at < code.length; ) {
    const c = code[at];
    if (c === '/' && (code[at + 1] === '/' || code[at + 1] === '*')) at = skipBlank(code, at);
    else if (c === '"' || c === "'" || c === '`') {
      const end = skipText(code, at);
      const text = code.slice(at + 1, end - 1);
      if (ENTRY.test(text) && FUNCTION.test(text) && !(c === '`' && /(?<!\\)\$\{/.test(text))) found.push({ at, text });
      at = end;
    } else at++;
  }
  if (found.length !== 1) return null;
  const [{ at, text }] = found;
  const line = code.slice(0, at).split('\n').length;
  return { code: '\n'.repeat(line - 1) + unescaped(text), note: `the evaluator is the text in line ${line}; the code around it is not run` };
}

/** @param {string} text the code of a string constant @returns {string} */
function unescaped(text) {
  return text.replace(/\\(u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|\n|[^])/g, (all, what, a, b, c) => {
    const point = a ?? b ?? c;
    if (point !== undefined) return String.fromCodePoint(Math.min(parseInt(point, 16), 0x10ffff));
    return { n: '\n', t: '\t', r: '\r', '\n': '' }[/** @type {'n'} */ (what)] ?? what;
  });
}
