// @ts-check
/**
 * Decides by which contract a function is called, and which properties of the row it needs.
 *
 * @typedef {{where: string, name: string, method?: string, names?: string[], output?: string, needs?: string[], reads?: string[], placed?: boolean, inside?: string, tested?: string[], compared?: ReturnType<typeof comparisonOf>[], params?: boolean, every?: Part[]}} Selector `names`: properties to pass one by one; `output`: the one that is the output;
 *   `needs`: properties that a row has to have; `tested`: those of them that the code can do without; `reads`: what it reads from its only argument, which is the row itself if the row has all these, but not the argument; `placed`: whether it gets inputs, outputs and trace if the row lacks a column that it names; `inside`: the column that is its row if it has all of `reads`; `compared`: pairs of values of its arguments that it compares; `params`: whether the first argument is `appParams`; `every`: all evaluators of a file
 * @typedef {{name: string, selector: Selector, uses?: string[]}} Part one of several evaluators; `uses`: the others that it uses; set only for a part that runs only for rows with all that it needs
 * @typedef {{contract: string, source: string, reason: string, entry: string, parameters: string[], selector: Selector, functions: {name: string, text: string}[], notes?: {code: string, message: string}[]}} Found
 * @typedef {{code: string, message: string, hint: string | null}} Refusal
 * @typedef {import('./offers.mjs').Candidate} Candidate
 * @typedef {import('./offers.mjs').Offer} Offer
 */
import { isOutput, readOf, takesOutput, withoutOptions } from './dialects/function.mjs';
import { OWN } from './dialects/steps.mjs';
import { DIALECTS } from './dialects/table.mjs';
import { testedNames, unreadKeys } from './facts.mjs';
import { functionsOf } from './offers.mjs';
import { optionalNames } from './optional_names.mjs';
import { parametersOf, withoutUnderscore } from './parameters.mjs';

/** Names of the functions that this product's own contracts call. */
export const OWN_NAMES = ['evaluate', 'main'];
export const OWN_CONTRACTS = ['evaluate', 'evaluate-v1', 'main'];
export const BY_PARAMETERS = /** @type {import('./dialects/table.mjs').Dialect} */ (DIALECTS.find((one) => one.contract === 'function'));

/** @param {Candidate} candidate @param {string} name the name by which it was found @param {string} code @returns {Found | Refusal} */
export function infer(candidate, name, code) {
  for (const dialect of candidate.selector.where === 'listed' ? DIALECTS.filter((one) => one.listed) : DIALECTS) {
    const inferred = dialect.infer(candidate, name, code);
    if (inferred) return 'code' in inferred ? inferred : found(candidate, dialect, 'inferred', inferred.reason);
  }
  return refuse('entry_not_found', `${candidate.label} fits no known contract`, 'set `contract`');
}

/** @param {Candidate} candidate @param {string} code @returns {Found | Refusal} */
export function inferDefault(candidate, code) {
  const { parameters } = parametersOf(candidate);
  if (!OWN_NAMES.includes(candidate.name) && parameters.length === 1 && !parameters[0].rest) {
    return refuse('entry_ambiguous', 'the default export takes one parameter, so it may be evaluate(inputs) or main(variables)', 'write its parameter as { output, expected }, with the names that it reads, name the function evaluate or main, or set `contract`');
  }
  return infer(candidate, candidate.name, code);
}

/** @param {Candidate} candidate @param {string} name @param {string} code @returns {{step: number, found: Found} | Refusal} */
export function mostCertain(candidate, name, code) {
  /** @type {Refusal | null} */
  let refused = null;
  /** @type {{step: number, found: Found} | null} */
  let best = null;
  for (const dialect of DIALECTS) {
    if (!dialect.entries.includes(name) && !dialect.takesAnyName?.test(code) && !OWN_CONTRACTS.includes(dialect.contract)) continue;
    const inferred = dialect.infer(candidate, name, code);
    if (inferred && 'code' in inferred) refused ??= inferred;
    else if (inferred && (best === null || inferred.step < best.step)) best = { step: inferred.step, found: found(candidate, dialect, 'inferred', inferred.reason) };
  }
  return best ?? refused ?? refuse('entry_not_found', `${candidate.label} fits no known contract`, 'set `contract`');
}

/**
 * Return how to call a function that was named, or a method. Without a sign of a contract, its parameters name properties of the row.
 *
 * @param {Candidate} candidate @param {string} name @param {Offer[]} offers @param {string} code @param {boolean} [isWished] whether the caller named
 * the entry @returns {Found | Refusal}
 */
export function inferNamed(candidate, name, offers, code, isWished = false) {
  if (candidate.selector.where === 'listed' || isAssert(candidate, code)) return infer(candidate, name, code);
  const best = mostCertain(candidate, name, code);
  if ('step' in best && best.step < OWN) return best.found;
  if (takesProperties(candidate, name, offers) || (isWished && takesParts(candidate, name))) {
    const named = found(candidate, BY_PARAMETERS, 'inferred', `${candidate.label} has parameters that name properties of the row`, true);
    if (mayBeByPosition(candidate, name, code)) named.selector.placed = true;
    return named;
  }
  return infer(candidate, name, code);
}

/** Names of parameters that get the row or a part of it by position. */
const POSITIONS = /^(?:input|inputs|variables|vars|row|args|props|event|ctx|context|trace|app_?params)$/i;
/** Names of the second parameter of an assert, whose first parameter is the output. */
const CONTEXT = /^(?:context|ctx|options|opts)$/;

/** Return whether a function takes an output and the context of an assert. @param {Candidate} candidate @param {string} code */
function isAssert(candidate, code) {
  const { parameters } = parametersOf(candidate);
  return parameters.length === 2 && CONTEXT.test(parameters[1].name) && (takesOutput(candidate) || /\bexports\b/.test(code));
}

/** Return whether the names of a function's parameters can be names of properties: they have a meaning, and do not belong to a call by position. In a file with exports, only exported functions count. @param {Candidate} candidate @param {string} name @param {Offer[]} offers */
function takesProperties(candidate, name, offers) {
  const parameters = withoutOptions(parametersOf(candidate).parameters);
  const functions = functionsOf(offers);
  const isOffered = candidate.selector.where !== 'declared' || functions.some((one) => one.name === name && one.exported) || !functions.some((one) => one.exported);
  const says = parameters.every((one) => one.keys === null && !one.rest && withoutUnderscore(one.name).length > 2);
  const [first, , third] = parameters;
  const isByPosition = parameters.length === 3 && withoutUnderscore(third.name) === 'trace';
  return isOffered && says && !isByPosition && first !== undefined && !OWN_NAMES.includes(name) && !POSITIONS.test(withoutUnderscore(first.name));
}

/** Return whether a function may be called with inputs, outputs and a trace although its parameters can be names of properties: it has three. @param {Candidate} candidate @param {string} name @param {string} code */
function mayBeByPosition(candidate, name, code) {
  const { parameters } = parametersOf(candidate);
  if (takesOutput(candidate) || parameters.length !== 3) return false;
  const inferred = infer(candidate, name, code);
  return 'contract' in inferred && inferred.contract === 'evaluate';
}

/** Return whether the only parameter of a function takes properties of an object: `({ output, llm })`. @param {Candidate} candidate @param {string} name */
function takesParts(candidate, name) {
  const { parameters } = parametersOf(candidate);
  return parameters.length === 1 && !parameters[0].rest && (parameters[0].keys?.length ?? 0) > 0 && !OWN_NAMES.includes(name);
}

/** @param {Candidate} candidate @param {string} contract @returns {Found | Refusal} */
export function declaredAs(candidate, contract) {
  const dialect = DIALECTS.find((one) => one.contract === contract);
  return dialect ? found(candidate, dialect, 'declared', `contract ${contract} as declared`) : refuse('entry_not_found', `contract ${contract} is not for this language`, 'set `contract` to auto');
}

/** Let an evaluator be called without arguments that its types mark as optional, but not without required ones. @param {Selector} selector @param {string} name @param {string} code */
export function leaveOptional(selector, name, code) {
  if (!selector.needs?.length) return;
  const { optional, required } = optionalNames(code, name);
  const left = new Set([...optional].map(withoutUnderscore));
  selector.needs = selector.needs.filter((one) => !left.has(one));
  selector.tested = selector.tested?.filter((one) => !required.has(one));
  if (selector.reads) selector.reads = selector.reads.filter((one) => !optional.has(one));
}

/** @param {Candidate} candidate @param {import('./dialects/table.mjs').Dialect} dialect @param {string} source @param {string} reason @param {boolean} [byColumn] whether a single parameter is a property of the row, not the row itself @returns {Found} */
export function found(candidate, dialect, source, reason, byColumn = false) {
  const { parameters } = parametersOf(candidate);
  const keys = dialect.takesOneObject && parameters.length === 1 ? parameters[0].keys : null;
  const whole = byColumn ? null : dialect.readsOfWhole?.(candidate) ?? null;
  const unread = dialect.byName && keys !== null ? unreadKeys(candidate.text) : [];
  const columns = withoutOptions(parameters);
  const apart = dialect.byName && columns.every((one) => one.keys === null) && whole === null;
  const passed = columns.map((one) => withoutUnderscore(one.name));
  const needs = dialect.byName ? whole ?? parameters.filter((one) => !one.optional).flatMap((one) => one.required ?? (apart ? [withoutUnderscore(one.name)] : [])).filter((one) => !unread.includes(one)) : [];
  const inside = whole !== null && /^inputs?$/.test(parameters[0]?.name) ? parameters[0].name : undefined;
  const reads = (apart && parameters.length === 1) || inside !== undefined ? readOf(parameters[0].name, candidate.text) : [];
  const tested = needs.length > 0 ? testedNames(candidate.text).map(withoutUnderscore).filter((one) => needs.includes(one)) : [];
  const selector = {
    ...candidate.selector,
    ...(dialect.contract === 'evaluate-v1' ? { params: true } : {}),
    ...(apart ? { names: passed, output: dialect.outputOf?.(passed) } : {}),
    ...(dialect.byName ? { needs } : {}),
    ...(reads.length > 0 ? { reads } : {}),
    ...(inside !== undefined ? { inside } : {}),
    ...(tested.length > 0 ? { tested } : {}),
  };
  const names = keys?.length ? keys : parameters.map((one) => (one.rest ? `...${one.name}` : one.name));
  return { contract: dialect.contract, source, reason, entry: candidate.name, parameters: names.slice(0, 100), selector, functions: [{ name: candidate.name, text: candidate.text }] };
}

/** For contracts that pass the row's own columns: the position of the argument that is the output; -1 if there is no such argument. @type {Record<string, number>} */
const PLACES_OF_OUTPUT = { evaluate: 1, 'evaluate-v1': 2, main: -1 };

/** @param {import('./comparisons.mjs').Pair} pair @param {string} contract */
export function comparisonOf({ sides, others, isOptional }, contract) {
  const found = (/** @type {import('./comparisons.mjs').Part[]} */ parts) => parts.map((one) => sideOf(one, contract));
  return { sides: found(sides), others: others.map(found), isOptional };
}

/**
 * Return where the runner finds one of two compared values; `mayLack`: whether it is in the output that the evaluator scores, or in a platform's own row, which need not have an expected answer.
 *
 * @param {import('./comparisons.mjs').Part} part @param {string} contract
 */
function sideOf({ at, of, keys, text }, contract) {
  const place = PLACES_OF_OUTPUT[contract];
  return { at, keys, text: text.slice(0, 80), mayLack: place === undefined || place === at || [of, ...keys].some(isOutput) };
}

/** @param {string} code @param {string} message @param {string} hint @returns {Refusal} */
export function refuse(code, message, hint) {
  return { code, message, hint };
}
