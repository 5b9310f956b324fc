// @ts-check
/** Recognises plain functions such as `score(output, expected)` or `score({ output, expected })` (dialect `function`). The names of the parameters show which values they get. */
import { SCORES } from '../candidates.mjs';
import { parametersOf, withoutUnderscore } from '../parameters.mjs';
import { BY_NAME } from './steps.mjs';

const OUTPUTS = new Set('output outputs response prediction predicted pred completion actual actualOutput actual_output modelOutput model_output generated candidate finalAnswer final_answer'.split(' '));
const TRUTHS = new Set('expected expectedOutput expected_output expectedAnswer expected_answer reference referenceOutput referenceAnswer reference_answer groundTruth ground_truth gold target correctAnswer correct_answer ideal truth label expect'.split(' '));
const OTHERS = new Set('input inputs question query prompt userInput user_input trace metadata'.split(' '));

/** Matches the name of the first parameter of functions that combine the scores of promptfoo's asserts. */
export const NAMED_SCORES = /^named_?scores$/i;
/** Names that stand for the output if no parameter has one of the names in `OUTPUTS`. */
const TEXTS = ['answer', 'result', 'text', 'content'];
const KNOWN = new Set([...OUTPUTS, ...TRUTHS, ...OTHERS]);

/** @type {import('./table.mjs').Dialect} */
export const dialect = {
  contract: 'function',
  entries: ['evaluate'],
  takesOneObject: true,
  byName: true,
  readsOfWhole(candidate) {
    const { parameters } = parametersOf(candidate);
    if (parameters.length !== 1 || parameters[0].keys !== null || !mayBeRow(parameters[0].name, candidate.text)) return null;
    return readOf(parameters[0].name, candidate.text).filter((each) => TRUTHS.has(each));
  },
  outputOf: (names) => (names.some((each) => OUTPUTS.has(each)) ? undefined : TEXTS.find((each) => names.includes(each))),
  takesDefault: true,
  takesAnyName: new RegExp(`\\b(?:${[...OUTPUTS].join('|')})\\b|\\b(?:checks|evaluators|graders|scorers)\\b`, 'i'),
  infer(candidate, name, code, isListed = false) {
    if (name === 'main' || /\bfunction\s+main\b|\bmain\s*=/.test(code)) return null;
    const { parameters } = parametersOf(candidate);
    const one = parameters.length === 1 ? parameters[0] : null;
    const read = one && one.keys === null && mayBeRow(one.name, candidate.text) ? readOf(one.name, candidate.text) : [];
    const destructured = one !== null && (one.keys !== null || read.length > 0);
    const names = destructured ? one.keys ?? read : parameters.map((each) => withoutUnderscore(each.name));
    if (parameters.some((each) => each.rest || (each.keys !== null && !destructured))) return null;
    if (isListed && parameters.length > 0 && parameters.every((each) => each.keys === null && !each.rest) && !isByPosition(parameters.map((each) => each.name))) {
      return { step: BY_NAME, reason: `${candidate.label} is in a list of evaluators, and takes ${parameters.map((each) => each.name).join(', ')}`, byColumn: true };
    }
    if (parameters.length > 0 && NAMED_SCORES.test(parameters[0].name)) return { step: BY_NAME, reason: `${candidate.label} combines the scores of several asserts`, byColumn: true };
    if (hasOneOutput(names) && (names.every((each) => KNOWN.has(each)) || (!destructured && SCORES.test(name)))) {
      if (!destructured && isByPosition(names)) return null;
      return { step: BY_NAME, reason: `${candidate.label} has parameters whose names say what they get: ${names.join(', ')}` };
    }
    const takesColumn = name === 'evaluate' && candidate.selector.method !== undefined && one !== null && one.keys === null && !KNOWN.has(one.name);
    return takesColumn ? { step: BY_NAME, reason: `${candidate.label} takes ${one.name}`, byColumn: true } : null;
  },
};

/** Return whether a parameter may stand for the row: its name says nothing else, or it is the input, from which the code reads an output. @param {string} name @param {string} text */
function mayBeRow(name, text) {
  return !KNOWN.has(name) || (/^inputs?$/.test(name) && readOf(name, text).some((each) => OUTPUTS.has(each)));
}

/** Return whether a function reads an output from its only parameter: then it takes a row, not the output itself. @param {import('../offers.mjs').Candidate} candidate */
export function readsRow(candidate) {
  const { parameters } = parametersOf(candidate);
  return parameters.length === 1 && !KNOWN.has(parameters[0].name) && readOf(parameters[0].name, candidate.text).some((each) => OUTPUTS.has(each));
}

/** Return whether a name stands for the output. @param {string} name */
export function isOutput(name) {
  return OUTPUTS.has(name);
}

/** Return whether a parameter of a function has the name of an output. @param {import('../offers.mjs').Candidate} candidate */
export function takesOutput(candidate) {
  return parametersOf(candidate).parameters.some((one) => one.keys === null && OUTPUTS.has(one.name));
}

/** Return whether a function takes an output and a ground truth, by the names of its parameters. @param {import('../parameters.mjs').Parameter[]} parameters */
export function takesPair(parameters) {
  const names = parameters.filter((one) => one.keys === null).map((one) => withoutUnderscore(one.name));
  return hasOneOutput(names) && names.some((each) => TRUTHS.has(each));
}

/** Return parameters without the last one, if it only has options with defaults and follows two or more others: `(prompt, choices, { steps = 3 } = {})`. If it follows only one, it may be the context of an assert. @param {import('../parameters.mjs').Parameter[]} parameters */
export function withoutOptions(parameters) {
  const last = parameters.at(-1);
  const isOptions = parameters.length > 2 && last?.optional && last.required?.length === 0 && !last.keys?.some((one) => KNOWN.has(one) || TEXTS.includes(one));
  return isOptions ? parameters.slice(0, -1) : parameters;
}

/** Return the properties that a function reads from its only parameter. @param {string} name @param {string} text @returns {string[]} */
export function readOf(name, text) {
  const own = name.replace(/\$/g, '\\$&');
  const parts = [...text.matchAll(new RegExp(`(?<![\\w$.])${own}\\??\\.([\\w$]+)`, 'g'))].map((found) => found[1]);
  const apart = [...text.matchAll(new RegExp(`\\b(?:const|let|var)\\s*(\\{[^{}]{0,500}\\})\\s*=\\s*${own}\\s*[;,\\n]`, 'g'))]
    .flatMap((found) => parametersOf({ text: `(${found[1]}) => 0`, length: 1 }).parameters[0]?.keys ?? []);
  return [...new Set([...parts, ...apart])];
}

/** Return whether exactly one of these names is for the output, and at most one for the ground truth. @param {string[]} names */
function hasOneOutput(names) {
  return names.filter((each) => OUTPUTS.has(each)).length === 1 && names.filter((each) => TRUTHS.has(each)).length <= 1;
}

/** Return whether these are the parameters of evaluate(inputs, outputs, trace). @param {string[]} names */
function isByPosition([first, second, third, ...more]) {
  return more.length === 0 && second !== undefined && OTHERS.has(first) && OUTPUTS.has(second) && (third === undefined || third === 'trace');
}
