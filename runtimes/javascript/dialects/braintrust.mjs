// @ts-check
/**
 * Recognises Braintrust scorers (dialect `braintrust`): a function `handler({ input, output, expected, metadata, … })`, or the
 * scorers in the `scores` of an `Eval`. Scorers of Axiom, evalite, vitest-evals and Mastra are called in the same way.
 */
import { parametersOf, skipBlank, skipBracket, splitAtCommas } from '../parameters.mjs';
import { AS_SCORER, DECLARED, withStandIns } from '../stand_ins.mjs';
import { readsRow } from './function.mjs';
import { LISTED, NAMED, PARAMETERS } from './steps.mjs';

const KEYS = new Set(['input', 'output', 'expected', 'metadata', 'trace', 'id', 'tags']);

/** Matches a declaration with the type that Braintrust and autoevals have for scorers. */
const TYPED = /\b(?:const|let)\s+([\w$]+)\s*:\s*(?:Eval)?Scorer\b/;
/** Matches code that declares a type of that name itself. */
const OWN_TYPE = /\b(?:type|interface)\s+(?:Eval)?Scorer\b(?:\s*<[^<>=]*>)?\s*[={]/;
const OWN_ENTRY = /\bfunction\s+(?:evaluate|main)\b|\b(?:evaluate|main)\s*=/;
const IMPORTED = /(?:\bfrom|\bimport|\b(?:import|require)\s*\()\s*["'](?:npm:)?(?:axiom|braintrust|autoevals|evalite|vitest-evals|@mastra\/core)(?:[@/][^"'\n]*)?["']/;
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;
const EVAL = /(?<![\w$.])(?:(?:[\w$]+\.)?(Eval)|describeEval|evalite(?:\.(?:(?:experimental_)?(?:only|skip)))?)\s*(?:<[^()]{0,500}>\s*)?\(/g;
const OWN_PROPERTY = /^(["']?)(?:scores|scorers|judges)\1\s*(?::\s*|$)/;
/** Matches a type after a value (`as …`); of a type that contains a comma, only the first part. */
const TYPE_AFTER = /\s+(?:as|satisfies)\s+[\w$.<>[\]|&\s]*$/;

/** Return the calls to `Eval` and similar functions, from the start of their names to their closing brackets. @param {string} code @returns {{at: number, open: number, end: number, isEval: boolean}[]} */
function callsOf(code) {
  if (!IMPORTED.test(code)) return [];
  return [...code.matchAll(EVAL)].map(({ 0: head, 1: name, index }) => {
    const open = index + head.length - 1;
    return { at: index, open, end: skipBracket(code, open), isEval: name !== undefined };
  }).filter((one) => one.end > 0);
}

/** Return the expression with the scores of each `Eval`. @param {string} code @returns {{at: number, text: string, after: string, isEval: boolean}[]}
 * `after`: the code that reads the scores from the value of this expression */
function scoresIn(code) {
  return callsOf(code).flatMap(({ open, isEval }) => {
    const config = elementsOf(code, open)[1];
    if (config === undefined) return [];
    if (!config.text.startsWith('{')) return [{ ...withoutType(config), after: isEval ? '.scores' : '.scorers', isEval }];
    const own = elementsOf(code, config.at).findLast(({ text }) => OWN_PROPERTY.test(text));
    const head = own && /** @type {RegExpExecArray} */ (OWN_PROPERTY.exec(own.text))[0];
    if (own === undefined || head === undefined) return [];
    return [{ ...withoutType(head === own.text ? own : { at: own.at + head.length, text: own.text.slice(head.length) }), after: '', isEval }];
  });
}

/** @template {{text: string}} T @param {T} part @returns {T} */
function withoutType(part) {
  return { ...part, text: part.text.replace(TYPE_AFTER, '') };
}

/** Return the scores that the code passes to `Eval` in lists which it writes out. @param {string} code @returns {{name: string, text: string}[]} */
function listedIn(code) {
  const parts = scoresIn(code).flatMap(({ at, text, after }) => {
    if (text.startsWith('[') && skipBracket(text, 0) === text.length) return elementsOf(code, at);
    const name = after === '' && IDENTIFIER.test(text) ? text.replace(/\$/g, '\\$&') : null;
    const declared = name && new RegExp(`\\b(?:const|let|var)\\s+${name}\\s*(?::[^=;]{0,200})?=\\s*\\[`).exec(code);
    return declared ? elementsOf(code, declared.index + declared[0].length - 1) : [{ text: `...${text}${after}` }];
  });
  return parts.map(({ text }) => ({ name: IDENTIFIER.test(text) ? text : '', text }));
}

/** @param {string} code @param {number} open the position of a list's opening bracket @returns {{at: number, text: string}[]} */
function elementsOf(code, open) {
  const end = skipBracket(code, open);
  let from = open + 1;
  return end < 0 ? [] : splitAtCommas(code.slice(from, end - 1)).map((part) => {
    const start = code.indexOf(part, from);
    from = start + part.length;
    return { at: start + skipBlank(part, 0), text: part.slice(skipBlank(part, 0)).replace(/\s*(?:\/\/[^\n]*|\/\*[^]*?\*\/)?\s*$/, '') };
  });
}

/** Return whether a function takes one object with the fields that scorers get. @param {import('../offers.mjs').Candidate} candidate */
function takesScored(candidate) {
  const { parameters } = parametersOf(candidate);
  const keys = parameters.length === 1 && !parameters[0].rest ? parameters[0].keys : [];
  return keys === null ? readsRow(candidate) : keys.includes('output') && keys.every((key) => KEYS.has(key));
}

/** Return a call that reports a list of scores only on request, because names in the list may be declared further below. @param {string} code @param {{at: number, text: string, after: string, isEval: boolean}} list */
function reported(code, { at, text, after, isEval }) {
  const value = isEval && !text.startsWith('[') ? `(${text})${after}` : asScorers(code, at, text, after);
  return `__evaluator_host_list__(${/\bawait\b/.test(text) ? '' : '() => '}${value})`;
}

/** Return code that makes a list of scorers from a list whose members may be objects that contain a scorer. @param {string} code @param {number} at
 * @param {string} text text of the list @param {string} after */
function asScorers(code, at, text, after) {
  const each = `.map((one) => ${AS_SCORER}(() => one))`;
  if (!text.startsWith('[') || skipBracket(text, 0) !== text.length) return `(${text})${after}${each}`;
  return elementsOf(code, at).reduceRight((list, one) => {
    const from = one.at - at;
    const read = /\bawait\b/.test(one.text) ? `((one) => () => one)(${one.text})` : `() => (${one.text})`;
    const made = one.text.startsWith('...') ? `...(${one.text.slice(3)})${each}` : `${AS_SCORER}(${read})`;
    return `${list.slice(0, from)}${made}${list.slice(from + one.text.length)}`;
  }, text);
}

/** Return only the line breaks of a text. @param {string} text */
function blank(text) {
  return text.replace(/[^\n]+/g, '');
}

/** @type {import('./table.mjs').Dialect} */
export const dialect = {
  contract: 'braintrust',
  entries: ['handler'],
  takesOneObject: true,
  takesAnyName: new RegExp(`${TYPED.source}|${IMPORTED.source}`),
  listed: listedIn,
  /** Return code that reports the scores of its experiments to the runner, without the rest of the experiments and without packages that only wrap
   * scorers. */
  source(code) {
    const lists = scoresIn(code);
    const calls = callsOf(code).filter(({ end }) => !/^\s*\??\./.test(code.slice(end)));
    const text = calls.reduceRight((text, { at, end }) => {
      const list = lists.find((one) => at < one.at && one.at < end);
      const kept = list ? `${blank(code.slice(at, list.at))}${reported(code, list)}${blank(code.slice(list.at + list.text.length, end))}` : blank(code.slice(at, end));
      return `${text.slice(0, at)}void [${kept}]${text.slice(end)}`;
    }, code);
    const own = withStandIns(text);
    return own === code ? null : `${own}${lists.length > 0 ? DECLARED : ''}`;
  },
  infer(candidate, name, code, isListed = false, isDeclared = false) {
    if (candidate.selector.where === 'listed' || listedIn(code).some((one) => one.name === name)) return { step: LISTED, reason: `${candidate.label} is among the scores of an Eval, whose data and task are not run` };
    const { parameters } = parametersOf(candidate);
    if (name !== 'handler' && !OWN_TYPE.test(code) && [...code.matchAll(new RegExp(TYPED, 'g'))].some((one) => one[1] === name)) return { step: PARAMETERS, reason: `${candidate.label} has the type of a scorer` };
    if (OWN_ENTRY.test(code)) return null;
    if (name !== 'handler') return (isDeclared || IMPORTED.test(code)) && takesScored(candidate) ? { step: PARAMETERS, reason: `${candidate.label} takes one object, in code that imports the platform's package` } : null;
    if (parameters.length !== 1 || parameters[0].rest) return null;
    const keys = parameters[0].keys ?? [];
    if (!keys.every((key) => KEYS.has(key))) return null;
    return { step: NAMED, reason: `${candidate.label} takes one object${keys.length ? ' with ' + keys.join(', ') : ''}` };
  },
};
