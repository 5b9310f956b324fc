// @ts-check
/**
 * Finds the entry of an evaluator and the contract by which it is called, from what its module offers.
 *
 * Declared beats guessed: a declared contract is trusted whatever the parameters look like. What could be meant in two
 * ways is an error that lists both.
 */
import { parseParameters } from './parameters.mjs';

/**
 * @typedef {{name: string, text: string, length: number}} Method
 * @typedef {{where: 'module'|'exports'|'declared', name: string, kind: string, text: string, length: number, ownName: string, methods: Method[]}} Offer
 * @typedef {{where: string, name: string, method?: string}} Selector
 * @typedef {{selector: Selector, label: string, name: string, text: string, length: number}} Candidate
 * @typedef {{contract: string, source: string, reason: string, entry: string, parameters: string[], selector: Selector}} Found
 * @typedef {{code: string, message: string, hint: string | null}} Refusal
 */

const DECLARED_NAME = /** @type {Record<string, string>} */ ({ evaluate: 'evaluate', 'evaluate-v1': 'evaluate', main: 'main' });
const FOURTH_OF_V1 = /^_?(correct_?answer|ground_?truth|expected|target|reference|datapoint|label)s?$/i;
const FIRST_OF_V1 = /^_?(app_?params|app_?config|params)$/i;

/** Names by which an entry is looked for. @param {string | null} entry */
export function wantedNames(entry) {
  return [...new Set(['evaluate', 'main', ...(entry !== null && isIdentifier(entry) ? [entry] : [])])];
}

/** @param {string} name */
function isIdentifier(name) {
  return /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name);
}

/**
 * @param {Offer[]} offers
 * @param {{contract: string, entry: string | null, code: string}} wish
 * @returns {Found | Refusal}
 */
export function findEntry(offers, { contract, entry, code }) {
  if (contract !== 'auto') return findDeclared(offers, contract, entry, code);
  if (entry !== null) {
    const named = lookUp(offers, entry);
    return named ? infer(named, entry === 'main') : notFound(offers, [entry], code);
  }
  const evaluate = lookUp(offers, 'evaluate');
  const main = lookUp(offers, 'main');
  if (evaluate && main) {
    return refuse('entry_ambiguous', 'both evaluate and main are defined', 'set `contract` to evaluate, evaluate-v1 or main, or name the function in `settings.entry`');
  }
  if (evaluate) return infer(evaluate, false);
  if (main) return infer(main, true);
  const only = defaultExport(offers);
  return only ? inferDefault(only) : notFound(offers, ['evaluate', 'main'], code);
}

/** @param {Offer[]} offers @param {string} contract @param {string | null} entry @param {string} code @returns {Found | Refusal} */
function findDeclared(offers, contract, entry, code) {
  const name = entry ?? DECLARED_NAME[contract];
  const candidate = lookUp(offers, name) ?? (entry === null ? defaultExport(offers) : null);
  if (!candidate) return notFound(offers, [name], code);
  return found(candidate, contract, 'declared', `contract ${contract} as declared`);
}

/** @param {Offer[]} offers @param {string} name @returns {Candidate | null} an export before a name of the module, a method last */
function lookUp(offers, name) {
  for (const where of ['exports', 'declared']) {
    const offer = offers.find((one) => one.where === where && one.name === name && isCallable(one));
    if (offer) return { selector: { where, name }, label: `function ${name}`, name, text: offer.text, length: offer.length };
  }
  for (const offer of offers) {
    const method = offer.methods.find((one) => one.name === name);
    if (!method || !(offer.where === 'module' || offer.name === 'default' || offer.name === name)) continue;
    return { selector: { where: offer.where, name: offer.name, method: name }, label: `method ${name}`, name, text: method.text, length: method.length };
  }
  return null;
}

/** @param {Offer[]} offers @returns {Candidate | null} the one function that the module itself is */
function defaultExport(offers) {
  const offer = offers.find((one) => (one.where === 'module' || (one.where === 'exports' && one.name === 'default')) && isCallable(one));
  if (!offer) return null;
  return { selector: { where: offer.where, name: offer.name }, label: 'the default export', name: offer.ownName || 'default', text: offer.text, length: offer.length };
}

/** @param {Offer} offer */
function isCallable(offer) {
  return offer.kind === 'function' && !/^class\b/.test(offer.text);
}

/** @param {Candidate} candidate @returns {import('./parameters.mjs').Parameter[]} */
function parametersOf(candidate) {
  return parseParameters(candidate.text) ??
    Array.from({ length: Math.min(candidate.length, 20) }, (_, index) => ({ name: `arg${index + 1}`, optional: false, rest: false, keys: null }));
}

/** @param {Candidate} candidate @param {boolean} isMain @returns {Found | Refusal} */
function infer(candidate, isMain) {
  const parameters = parametersOf(candidate);
  const required = parameters.filter((one) => !one.optional).length;
  const counted = parameters.filter((one) => !one.rest).length;
  const takesRest = counted < parameters.length;
  if (isMain) return inferMain(candidate, required);
  if (takesRest && counted === 0) {
    return refuse('entry_ambiguous', `${candidate.label} takes (...${parameters[0].name}): evaluate (3 arguments) or evaluate-v1 (4 arguments)`, 'set `contract`, or name the parameters');
  }
  if (required > 4) {
    return refuse('binding_error', `${candidate.label} requires ${required} parameters (${parameters.map((one) => one.name).join(', ')}); evaluate takes 3 and evaluate-v1 takes 4`, 'write evaluate(inputs, outputs, trace)');
  }
  const fourth = counted >= 4 && (required === 4 || looksLikeV1(parameters));
  const count = fourth ? 4 : Math.min(counted, 3);
  return found(candidate, fourth ? 'evaluate-v1' : 'evaluate', 'inferred', `${candidate.label} with ${count} parameter${count === 1 ? '' : 's'}`);
}

/** A fourth parameter with a default may be the legacy one or an option of the author: the names tell. @param {{name: string}[]} parameters */
function looksLikeV1(parameters) {
  return FIRST_OF_V1.test(parameters[0].name) || FOURTH_OF_V1.test(parameters[3].name);
}

/** @param {Candidate} candidate @param {number} required @returns {Found | Refusal} */
function inferMain(candidate, required) {
  if (required > 1) {
    return refuse('binding_error', `main receives one object with all variables, but requires ${required} parameters`, 'write main({completion, target}) or main(variables)');
  }
  return found(candidate, 'main', 'inferred', `${candidate.label} with one object of variables`);
}

/** @param {Candidate} candidate @returns {Found | Refusal} */
function inferDefault(candidate) {
  const parameters = parametersOf(candidate);
  if (candidate.name === 'main') return infer(candidate, true);
  if (candidate.name !== 'evaluate' && parameters.length === 1 && !parameters[0].rest) {
    return refuse('entry_ambiguous', 'the default export takes one parameter: evaluate(inputs) or main(variables)', 'name the function evaluate or main, or set `contract`');
  }
  return infer(candidate, false);
}

/** @param {Candidate} candidate @param {string} contract @param {string} source @param {string} reason @returns {Found} */
function found(candidate, contract, source, reason) {
  const parameters = parametersOf(candidate);
  const keys = contract === 'main' && parameters.length === 1 ? parameters[0].keys : null;
  const names = keys?.length ? keys : parameters.map((one) => (one.rest ? `...${one.name}` : one.name));
  return { contract, source, reason, entry: candidate.name, parameters: names.slice(0, 100), selector: candidate.selector };
}

/** @param {Offer[]} offers @param {string[]} names @param {string} code @returns {Refusal} */
function notFound(offers, names, code) {
  const wanted = names.join(' or ');
  const wrongKind = offers.find((one) => names.includes(one.name) && !isCallable(one));
  if (wrongKind) {
    const what = /^class\b/.test(wrongKind.text) ? 'a class' : `a ${wrongKind.kind}`;
    return refuse('entry_not_found', `${wrongKind.name} is ${what}, not a function`, `define function ${wrongKind.name}(…), or export an instance with such a method`);
  }
  const near = nearMisses(offers, code);
  const seen = near.length ? `; the code defines ${near.join(', ')}` : '';
  return refuse('entry_not_found', `no function ${wanted} was found${seen}`, near.length ? `rename it to ${names[0]}, or name it in \`settings.entry\`` : 'define function evaluate(inputs, outputs, trace) or main(variables)');
}

/** @param {Offer[]} offers @param {string} code @returns {string[]} */
function nearMisses(offers, code) {
  const declared = code.matchAll(/^[ \t]*(?:export\s+)?(?:default\s+)?(?:async\s+)?(?:function\s*\*?\s*|(?:const|let|var)\s+(?=[\w$]+\s*=\s*(?:async\b|function\b|\(|[\w$]+\s*=>)))([\w$]+)/gm);
  const names = [...offers.filter(isCallable).map((one) => one.name), ...[...declared].map((match) => match[1])];
  return [...new Set(names.filter((name) => name !== '' && name !== 'default'))].slice(0, 8);
}

/** @param {string} code @param {string} message @param {string} hint @returns {Refusal} */
function refuse(code, message, hint) {
  return { code, message, hint };
}
