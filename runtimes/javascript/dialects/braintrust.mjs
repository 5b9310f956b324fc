// @ts-check
/** Dialect `braintrust`: `handler({ input, output, expected, metadata, … })`, one object, and the scorers in the `scores` of an `Eval`. */
import { parametersOf, skipBlank, skipBracket, splitAtCommas } from '../parameters.mjs';
import { readsRow } from './function.mjs';
import { LISTED, NAMED, PARAMETERS } from './steps.mjs';

const KEYS = new Set(['input', 'output', 'expected', 'metadata', 'trace', 'id', 'tags']);

/** Declarations with the type of a scorer of Braintrust or autoevals. */
const TYPED = /\b(?:const|let)\s+([\w$]+)\s*:\s*(?:Eval)?Scorer\b/;
/** A declaration of such a type in the code itself. */
const OWN_TYPE = /\b(?:type|interface)\s+(?:Eval)?Scorer\b(?:\s*<[^<>=]*>)?\s*[={]/;
const OWN_ENTRY = /\bfunction\s+(?:evaluate|main)\b|\b(?:evaluate|main)\s*=/;
const IMPORTED = /(?:\bfrom|\bimport|\b(?:import|require)\s*\()\s*["'](?:npm:)?(?:braintrust|autoevals)(?:[@/][^"'\n]*)?["']/;
const EVAL = /(?<![\w$.])(?:[\w$]+\.)?Eval\s*(?:<[^()]{0,500}>\s*)?\(/g;
const LIST = /(?<![\w$.])(?:scores|(["'])scores\1)\s*(?::\s*(?:(\[)|([\w$]+))|(?=[,}]))/;

/** @typedef {{at: number, text: string, name: string, isInline: boolean}} Listed `at`: where it begins; `name`: its own, or the one that it gets */

/** Return the calls of `Eval`, from the start of their names to their closing brackets. @param {string} code @returns {{at: number, open: number, end: number}[]} */
function callsOf(code) {
  if (!IMPORTED.test(code)) return [];
  return [...code.matchAll(EVAL)].map(({ 0: head, index }) => ({ at: index, open: index + head.length - 1, end: skipBracket(code, index + head.length - 1) })).filter((one) => one.end > 0);
}

/** Return what the code gives to `Eval` as scores. @param {string} code @returns {Listed[]} */
function listedIn(code) {
  const lists = new Set(callsOf(code).map(({ open, end }) => {
    const found = LIST.exec(code.slice(open, end));
    if (found === null) return -1;
    if (found[2]) return open + found.index + found[0].length - 1;
    const name = (found[3] ?? 'scores').replace(/\$/g, '\\$&');
    const declared = new RegExp(`\\b(?:const|let|var)\\s+${name}\\s*(?::[^=;]{0,200})?=\\s*\\[`).exec(code);
    return declared === null ? -1 : declared.index + declared[0].length - 1;
  }));
  return [...lists].filter((at) => at >= 0).flatMap((at) => elementsOf(code, at)).map(({ at, text }, index) => {
    const isName = /^[A-Za-z_$][\w$]*$/.test(text);
    return { at, text, isInline: !isName && !text.startsWith('...'), name: isName ? text : text.startsWith('...') ? '' : `scorer_${index}` };
  });
}

/** @param {string} code @param {number} open of a list @returns {{at: number, text: string}[]} */
function elementsOf(code, open) {
  const end = skipBracket(code, open);
  let from = open + 1;
  return end < 0 ? [] : splitAtCommas(code.slice(from, end - 1)).map((part) => {
    const start = code.indexOf(part, from);
    from = start + part.length;
    return { at: start + skipBlank(part, 0), text: part.slice(skipBlank(part, 0)).replace(/\s*(?:\/\/[^\n]*|\/\*[^]*?\*\/)?\s*$/, '') };
  });
}

/** Return whether a function takes one object with what scorers get. @param {import('../entry.mjs').Candidate} candidate */
function takesScored(candidate) {
  const { parameters } = parametersOf(candidate);
  const keys = parameters.length === 1 && !parameters[0].rest ? parameters[0].keys : [];
  return keys === null ? readsRow(candidate) : keys.includes('output') && keys.every((key) => KEYS.has(key));
}

/** Return the lines of a text, empty. @param {string} text */
function blank(text) {
  return text.replace(/[^\n]+/g, '');
}

/** @type {import('./table.mjs').Dialect} */
export const dialect = {
  contract: 'braintrust',
  entries: ['handler'],
  takesOneObject: true,
  takesAnyName: new RegExp(`${TYPED.source}|${IMPORTED.source}`),
  listed: (code) => listedIn(code).map(({ name, text }) => ({ name, text })),
  /** Name the scorers that have no name, and leave the experiment out. */
  source(code) {
    const calls = callsOf(code).filter(({ end }) => !/^\s*\??\./.test(code.slice(end)));
    const inline = listedIn(code).filter((one) => one.isInline);
    if (calls.length === 0) return null;
    const named = (/** @type {Listed} */ { at, text, name }, after = '') => ({ at, end: at + text.length, text: `${name} = ${text}${after}` });
    const edits = inline.filter(({ at }) => !calls.some((call) => call.at < at && at < call.end)).map((one) => named(one));
    for (const { at, end } of calls) {
      let from = at;
      const kept = inline.filter((one) => at < one.at && one.at < end).map((one) => {
        const text = blank(code.slice(from, one.at)) + named(one, ',').text;
        from = one.at + one.text.length;
        return text;
      });
      edits.push({ at, end, text: `void [${kept.join('')}${blank(code.slice(from, end))}]` });
    }
    const made = edits.sort((one, other) => other.at - one.at).reduce((text, one) => text.slice(0, one.at) + one.text + text.slice(one.end), code);
    return inline.length > 0 ? `${made}\n;var ${inline.map((one) => one.name).join(', ')};` : made;
  },
  infer(candidate, name, code) {
    if (listedIn(code).some((one) => one.name === name)) return { step: LISTED, reason: `${candidate.label} is among the scores of an Eval` };
    const { parameters } = parametersOf(candidate);
    if (name !== 'handler' && !OWN_TYPE.test(code) && [...code.matchAll(new RegExp(TYPED, 'g'))].some((one) => one[1] === name)) return { step: PARAMETERS, reason: `${candidate.label} has the type of a scorer` };
    if (OWN_ENTRY.test(code)) return null;
    if (name !== 'handler') return IMPORTED.test(code) && takesScored(candidate) ? { step: PARAMETERS, reason: `${candidate.label} takes one object, in code that imports the platform's package` } : null;
    if (parameters.length !== 1 || parameters[0].rest) return null;
    const keys = parameters[0].keys ?? [];
    if (!keys.every((key) => KEYS.has(key))) return null;
    return { step: NAMED, reason: `${candidate.label} takes ${keys.length ? keys.join(', ') + ' of ' : ''}one object` };
  },
};
