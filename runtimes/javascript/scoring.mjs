// @ts-check
/**
 * Finds functions that score, and helpers of such functions, by their names, their parameters, and where the code uses them.
 *
 * @typedef {import('./contracts.mjs').Found} Found
 * @typedef {import('./offers.mjs').Candidate} Candidate
 * @typedef {import('./offers.mjs').Offer} Offer
 */
import { SCORES, usedBy, usersOf } from './candidates.mjs';
import { makesEvaluators } from './classes.mjs';
import { BY_PARAMETERS, found, inferNamed } from './contracts.mjs';
import { isOutput, takesOutput, takesPair, withoutOptions } from './dialects/function.mjs';
import { madeBy } from './facts.mjs';
import { callsIn } from './nodes.mjs';
import { defaultExport, functionsOf, isWhole, lookUp } from './offers.mjs';
import { parametersOf } from './parameters.mjs';

/** Words, besides those of `SCORES`, in the names of functions that may score a row. */
const LIKELY = /^(?:accuracy|correct|correctness|eval|evaluate|f1|hit|jaccard|judge|match|mrr|ndcg|precision|quality|rank|ranked|recall|reciprocal|similarity|verify)$/;
/** First words in the names of functions that prepare, write or add up the results of other functions. */
const PREPARES = /^(?:aggregate|build|create|define|extract|format|get|load|make|normali[sz]e|parse|print|read|register|render|save|summari[sz]e|to|write)(?=[A-Z_])/;

/**
 * Return the exported functions whose names say that they may score, and whose parameters have plain names. Such a function is called only if the row
 * lacks what the other evaluators (`taken`) need, and has a property with the name of each of the function's parameters.
 *
 * @param {Offer[]} offers @param {string[]} taken @returns {{name: string, found: Found, uses: string[]}[]}
 */
export function othersOfColumns(offers, taken) {
  const functions = functionsOf(offers).filter((one) => one.exported && !/^_|^default$/.test(one.name) && !PREPARES.test(one.name) && !taken.includes(one.name) && madeBy(one.text) === null);
  const likely = functions.filter(({ name }) => SCORES.test(name) || wordsOf(name).some((word) => LIKELY.test(word)));
  const found_ = likely.flatMap(({ name }) => lookUp(offers, name) ?? []).filter((one) => {
    const parameters = withoutOptions(parametersOf(one).parameters);
    return parameters.some((each) => !each.optional) && parameters.every((each) => each.keys === null && !each.rest);
  });
  return found_.map((one) => ({
    name: one.name, uses: [...usedBy(one.name, functionsOf(offers))],
    found: found(one, BY_PARAMETERS, 'inferred', `${one.label} has parameters that name properties of the row`, true),
  }));
}

/** Return the only exported function that takes the output, and other properties of the row. @param {Offer[]} offers @returns {Candidate | null} */
export function theOnlyTaker(offers) {
  const functions = functionsOf(offers).filter((one) => one.exported && !/^_|^default$/.test(one.name) && !PREPARES.test(one.name) && madeBy(one.text) === null);
  const takers = functions.flatMap(({ name }) => lookUp(offers, name) ?? []).filter((one) => {
    const { parameters } = parametersOf(one);
    return parameters.length > 1 && takesOutput(one) && parameters.every((each) => each.keys === null && !each.rest);
  });
  return takers.length === 1 ? takers[0] : null;
}

/** @param {string} name @returns {string[]} the words of a name, in lower case */
function wordsOf(name) {
  return name.replace(/([a-z\d])([A-Z])/g, '$1_$2').toLowerCase().split('_');
}

/**
 * Return the exported functions that no other one uses, and whose names say that they score, or that take an output and a ground truth. Their parameters then
 * name properties of the row. A function that makes an evaluator, or has no parameters, is not returned, and may use the returned ones.
 *
 * @param {Offer[]} offers @returns {Candidate[]}
 */
export function thoseThatScore(offers) {
  const functions = functionsOf(offers).filter((one) => parametersOf(one).parameters.length > 0 && madeBy(one.text) === null);
  const free = functions.filter((one) => one.exported && one.name !== 'default' && (SCORES.test(one.name) || takesPair(parametersOf(one).parameters)) && usersOf(one.name, functions).length === 0);
  return free.flatMap(({ name }) => lookUp(offers, name) ?? []).filter((one) => {
    const { parameters } = parametersOf(one);
    return parameters.length === 1 ? !parameters[0].rest && parameters[0].keys?.length !== 1 : parameters.every((each) => each.keys === null && !each.rest);
  });
}

/**
 * Return the only exported function that takes the output and uses at least two of the functions that were found. For example, such a function runs the checks
 * that a test case names. This function is the evaluator, and its parameters name properties of the row.
 *
 * @param {Found[]} equal @param {Offer[]} offers @returns {Found | null}
 */
export function runnerOf(equal, offers) {
  const functions = functionsOf(offers);
  const names = new Set(equal.map((one) => one.entry));
  const uses = [...names].flatMap((name) => usersOf(name, functions));
  const runners = functions.filter((one) => one.exported && one.name !== 'default' && !names.has(one.name) && uses.filter((each) => each === one.name).length > 1);
  const [runner, ...others] = runners.flatMap((one) => lookUp(offers, one.name) ?? []).filter((one) => takesOutput(one) && parametersOf(one).parameters.every((each) => each.keys === null && !each.rest));
  return runner === undefined || others.length > 0 ? null : found(runner, BY_PARAMETERS, 'inferred', `${runner.label} takes the output, and uses the other functions that do`, true);
}

/** Names of exported objects whose methods score. */
const HOLDERS = /(?:evaluator|grader|judge|metric|metrics|scorer)$/i;

/**
 * Return the methods of exported objects that score: methods whose own names say so; or else all methods, if the object's name says so and the methods have equal parameters;
 * or the only method of the default export, if that method takes the output.
 *
 * @param {Offer[]} offers @param {string} code @returns {Found[]}
 */
export function methodsThatScore(offers, code) {
  return offers.filter((one) => one.where === 'exports' && one.kind === 'object').flatMap((holder) => {
    const methods = holder.methods.flatMap(({ name }) => lookUp(offers, name) ?? []).filter((one) => one.selector.method !== undefined && one.selector.name === holder.name);
    const named = methods.filter((one) => SCORES.test(one.name));
    const heads = methods.map((one) => parametersOf(one).parameters.map((each) => each.name).join());
    const isOnly = isWhole(holder) && methods.length === 1 && takesOutput(methods[0]);
    const meant = named.length > 0 || !(isOnly || (HOLDERS.test(holder.name) && new Set(heads).size === 1)) ? named : methods;
    const inferred = meant.map((one) => inferNamed(one, one.name, offers, code));
    return inferred.flatMap((one) => ('contract' in one && one.contract === BY_PARAMETERS.contract ? one : []));
  });
}

/**
 * Return functions that no other function uses, and whose only parameter has a name without a meaning: each may be the
 * evaluator, just as those that are recognised by the names of their parameters.
 *
 * @param {Found[]} named @param {Offer[]} offers @param {string} code @returns {string[]}
 */
export function silentOf(named, offers, code) {
  const functions = functionsOf(offers);
  const texts = [...new Set(named.map((one) => one.entry))].map((name) => (lookUp(offers, name) ?? defaultExport(offers))?.text);
  const silent = functions.filter(({ name }) => !name.startsWith('_') && takesOneUnknown(lookUp(offers, name), texts) && usersOf(name, functions).length === 0 && !isCalled(name, code) && madeBy(lookUp(offers, name)?.text ?? '') === null);
  const isScoring = named.some((one) => SCORES.test(one.entry)); // if a function's name says that it scores, functions with other names are helpers
  return named.some((one) => one.entry === 'evaluate') ? [] : silent.map((one) => one.name).filter((name) => !isScoring || SCORES.test(name));
}

/** Return whether a function takes one value, and its source is not among these texts. @param {{text: string, length: number} | null} candidate @param {(string | undefined)[]} texts */
function takesOneUnknown(candidate, texts) {
  const { parameters } = parametersOf(candidate ?? { text: '', length: 0 });
  return parameters.length === 1 && parameters[0].keys === null && !parameters[0].rest && !texts.includes(candidate?.text);
}

/** Return whether code calls a function or passes it on, inside or outside functions. @param {string} name @param {string} code */
function isCalled(name, code) {
  const own = name.replace(/\$/g, '\\$&');
  return new RegExp(`(?<![\\w$.]|\\bfunction\\s{1,9}\\*?\\s{0,9})${own}\\s*\\(|[(,]\\s*${own}\\s*[,)]`).test(code);
}

/**
 * Return whether a function is only a helper of an exported function: it is not exported itself, and an exported function uses it. If the exported
 * function scores and has known parameters, it may also use the helper through other functions.
 *
 * @param {string} name @param {import('./candidates.mjs').Function_[]} functions
 */
export function isHelper(name, functions) {
  const exported = functions.filter((one) => one.exported);
  if (exported.length === 0 || exported.some((one) => one.name === name)) return false;
  const direct = usersOf(name, functions);
  if (exported.some((one) => direct.includes(one.name))) return true;
  const using = new Set(direct);
  for (const one of using) usersOf(one, functions).forEach((each) => using.add(each));
  return exported.some((one) => using.has(one.name) && SCORES.test(one.name) && !takesOneUnknown(one, []));
}

/** Words in the names of functions that take a text apart for others. */
const TAKES_APART = /^(?:clean|decode|extract|normali[sz]e|parse|read|split|strip|tokeni[sz]e|trim)$/;
/** Words in the names of functions that test whether others succeed, such as `canParse`. */
const TESTS = /^(?:are|can|did|does|has|is|ok|rate|succeeds|success|valid|was)$/;

/**
 * Return whether a function is a part of an exported class: a method calls it to take the output apart, or a class that
 * makes evaluators calls it, but never with the output.
 *
 * @param {Candidate | null} candidate @param {import('./candidates.mjs').Function_[]} classes
 */
export function isPartOf(candidate, classes) {
  const words = wordsOf(candidate?.name ?? '');
  if (candidate?.selector.where !== 'declared' || SCORES.test(candidate.name) || words.some((one) => TESTS.test(one) || LIKELY.test(one))) return false;
  const isApart = takesOutput(candidate) && parametersOf(candidate).parameters.length === 1 && words.some((one) => TAKES_APART.test(one));
  return classes.some(({ text }) => {
    const calls = callsIn(text).filter((one) => one.name === candidate.name);
    return calls.length > 0 && (isApart || (makesEvaluators(text) && !calls.some(({ given }) => given.length === 0 || given.some(isOutput))));
  });
}

/** Return the only exported function that no other one uses, or the only function of code without exports. @param {Offer[]} offers @returns {Candidate | null} */
export function theOnlyFunction(offers) {
  const functions = functionsOf(offers).filter((one) => one.name !== 'default' && !one.name.startsWith('_'));
  const exported = functions.filter((one) => one.exported);
  const free = (exported.length ? exported : functions).filter((one) => usersOf(one.name, functions).length === 0);
  return free.length === 1 ? lookUp(offers, free[0].name) : null;
}
