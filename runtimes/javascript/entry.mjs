// @ts-check
/**
 * Finds the entry of an evaluator among the functions that its module offers, and the dialect of the entry.
 *
 * A declared contract is used even if the parameters do not suit it. Code that fits two dialects gives an error that
 * names both.
 *
 * @typedef {import('./contracts.mjs').Found} Found
 * @typedef {import('./contracts.mjs').Refusal} Refusal
 * @typedef {import('./contracts.mjs').Selector} Selector
 * @typedef {import('./offers.mjs').Candidate} Candidate
 * @typedef {import('./offers.mjs').Offer} Offer
 */
import { SCORES, listed, meant, shown } from './candidates.mjs';
import { comparedIn } from './comparisons.mjs';
import { BY_PARAMETERS, OWN_CONTRACTS, OWN_NAMES, comparisonOf, declaredAs, found, infer, inferDefault, inferNamed, leaveOptional, refuse } from './contracts.mjs';
import { BY_NAME, LISTED, OWN } from './dialects/steps.mjs';
import { DIALECTS } from './dialects/table.mjs';
import { notFound } from './not_found.mjs';
import { classesIn, defaultExport, functionsOf, isCallable, isIdentifier, lookUp, withNames } from './offers.mjs';
import { parametersOf } from './parameters.mjs';
import { isProgramMain } from './programs.mjs';
import { isHelper, isPartOf, methodsThatScore, othersOfColumns, runnerOf, silentOf, theOnlyFunction, theOnlyTaker, thoseThatScore } from './scoring.mjs';
import { findEvery, ofList, together, withOthers } from './several.mjs';
import { EVERY } from './wanted_names.mjs';

/** Return the code to run: the pasted code, or what a dialect puts in its place. @param {string} code @param {{contract: string, entry: string |
 * null}} wish */
export function sourceOf(code, { contract, entry }) {
  const possible = DIALECTS.filter((one) => one.source && (contract === 'auto' ? entry === null || one.listed : one.contract === contract));
  return possible.map((one) => one.source?.(code, contract !== 'auto' && entry === null)).find((one) => typeof one === 'string') ?? code;
}

/** Return whether a contract runs the whole code for each row, as a program, instead of calling a function. @param {string} contract */
export function isProgram(contract) {
  return DIALECTS.some((one) => one.contract === contract && one.isProgram === true);
}

/**
 * @param {Offer[]} offers
 * @param {{contract: string, entry: string | null, code: string, language: string, source?: string, lineOf?: (text: string) => number | null}} wish
 *   `source`: the code as JavaScript; `lineOf`: returns the line of a function, by its text
 * @returns {Found | Refusal}
 */
export function findEntry(offers, wish) {
  const named = withNames(offers, wish.code);
  const usual = search(named, wish);
  const answer = 'contract' in usual && usual.contract !== 'main' ? usual : besideProgram(named, wish) ?? usual;
  if ('code' in answer) return answer;
  if (wish.language === 'typescript') {
    for (const { name, selector } of answer.selector.every ?? [{ name: answer.entry, selector: answer.selector }]) leaveOptional(selector, name, wish.code);
  }
  const dialect = DIALECTS.find((one) => one.contract === answer.contract);
  const refusal = dialect?.refuse?.(wish.code, wish.language);
  if (refusal) return refusal;
  for (const [at, { selector }] of (answer.selector.every ?? [answer]).entries()) {
    const compared = comparedIn(answer.functions[at]?.text ?? '');
    if (compared.length > 0) selector.compared = compared.map((pair) => comparisonOf(pair, answer.contract));
  }
  const isKnown = wish.entry !== null || offers.some((one) => one.where === 'listed') || answer.notes?.some((one) => one.code === 'entry_left_out');
  return isKnown ? answer : { ...answer, notes: [...(answer.notes ?? []), ...unread(dialect?.listed?.(wish.code) ?? [])] };
}

/** Matches the places that define `main`; a comment inside hides them from the patterns of dialects. */
const MAIN = /\bfunction\s+(?=main\b)|(?<=\bmain)\s*(?==)/g;

/**
 * Return the evaluator of code whose `main` is a program: it takes nothing, and returns no score. Return null if there is no such `main`, or if nothing else may
 * be the evaluator: no other evaluator is found, and no other function is exported.
 *
 * @param {Offer[]} offers @param {Parameters<typeof findEntry>[1]} wish @returns {Found | Refusal | null}
 */
function besideProgram(offers, wish) {
  const main = wish.contract === 'auto' && wish.entry === null ? lookUp(offers, 'main') : null;
  if (main === null || main.selector.method !== undefined || parametersOf(main).parameters.length > 0 || /\barguments\b/.test(main.text) || !isProgramMain(main.text, wish.code)) return null;
  const others = offers.filter((one) => one.name !== 'main');
  const hidden = (/** @type {string} */ text) => text.replace(MAIN, (one) => `${one.trim()}/**/`);
  const answer = search(others, { ...wish, code: hidden(wish.code), source: hidden(wish.source ?? wish.code) });
  return 'contract' in answer || functionsOf(others).some((one) => one.exported && one.name !== 'default') ? answer : null;
}

/** Return a warning for each list of evaluators that the code did not pass to its platform while it was loaded. @param {{name: string, text: string}[]} listed */
function unread(listed) {
  return listed.filter((one) => one.name === '').map(({ text }) => ({ code: 'entry_left_out', message: `the evaluators in ${text.replace(/^\.{3}/, '').slice(0, 80)} are not called, because the code does not pass them to its platform while it loads` }));
}

/** @param {Offer[]} offers @param {{contract: string, entry: string | null, code: string, source?: string, lineOf?: (text: string) => number | null}} wish @returns {Found | Refusal} */
function search(offers, { contract, entry, code, source = code, lineOf = () => null }) {
  if (isProgram(contract)) return { contract, source: 'declared', reason: `contract ${contract} as declared`, entry: contract, parameters: [], selector: { where: 'program', name: contract }, functions: [] };
  if (entry === EVERY) return findEvery(offers, contract, code);
  if (contract !== 'auto') return findDeclared(offers, contract, entry, [code, source], lineOf);
  if (entry !== null) {
    const named = lookUp(offers, entry);
    return named ? inferNamed(named, entry, offers, code, true) : notFound(offers, [entry], code);
  }
  const best = bestOf(offers, [code, source], DIALECTS);
  const step = best[0]?.step ?? OWN;
  const contracts = [...new Set(best.map((one) => one.found.contract))];
  if (step < OWN && contracts.length > 1) {
    const signs = best.map((one) => `${one.found.contract} (${one.found.reason})`);
    return refuse('entry_ambiguous', `the code may be written for ${signs.join(' or for ')}`, `say which one you mean: set \`contract\` to ${contracts.join(' or ')}`);
  }
  if (step === LISTED) return ofList(best.map((one) => one.found), offers, code, lineOf);
  if (step < OWN) {
    const found = best.map((one) => one.found);
    const runner = step === BY_NAME ? runnerOf(found, offers) : null;
    if (runner) return runner;
    const silent = step === BY_NAME ? silentOf(found, offers, code) : [];
    return theOnly(found, silent, functionsOf(offers), [code, source], lineOf);
  }
  const names = OWN_NAMES.filter((name) => lookUp(offers, name));
  if (names.length > 1) {
    const known = DIALECTS.map((one) => one.contract).sort();
    return refuse('entry_ambiguous', `both ${names.join(' and ')} are defined`, `set \`contract\` to ${known.slice(0, -1).join(', ')} or ${known.at(-1)}, or name the function in \`settings.entry\``);
  }
  if (names.length === 1) return infer(/** @type {Candidate} */ (lookUp(offers, names[0])), names[0], code);
  const only = defaultExport(offers, code);
  if (only) return inferDefault(only, code);
  const functions = thoseThatScore(offers).map((one) => found(one, BY_PARAMETERS, 'inferred', `${one.label} is an export that no other export uses, and ${SCORES.test(one.name) ? 'its name says that it scores' : 'it takes an output and a ground truth'}`, true));
  const scoring = functions.length > 0 ? functions : methodsThatScore(offers, code);
  if (scoring.length > 0) return withOthers(theOnly(scoring, [], functionsOf(offers), [code, source], lineOf), offers);
  const others = othersOfColumns(offers, []);
  const taker = others.length === 0 ? theOnlyTaker(offers) : null;
  if (taker) return found(taker, BY_PARAMETERS, 'inferred', `${taker.label} is the only export that takes the output`, true);
  if (others.length === 0) return notFound(offers, OWN_NAMES, code);
  if (others.length === 1) return others[0].found;
  const columned = others.map((one) => one.name);
  return together(others, [{ code: 'several_entries', message: `the score is the mean of those functions that find all their parameters in the row, among ${shown(columned, functionsOf(offers), lineOf)}; to use one of them, name it in \`settings.entry\`` }]);
}

/**
 * Return the entry that is meant, among those that were found equally well.
 *
 * @param {Found[]} equal @param {string[]} silent names of other functions that may be the evaluator @param {import('./candidates.mjs').Function_[]}
 * functions
 * @param {string[]} texts the code, and the same as JavaScript @param {(text: string) => number | null} lineOf @returns {Found | Refusal}
 */
function theOnly(equal, silent, functions, texts, lineOf) {
  const names = [...new Set(equal.map((one) => one.entry))];
  if (names.includes('evaluate')) return /** @type {Found} */ (equal.find((one) => one.entry === 'evaluate'));
  const left = meant([...names, ...silent], functions, texts);
  if (left.length === 1 && names.includes(left[0])) return /** @type {Found} */ (equal.find((one) => one.entry === left[0]));
  const unclear = silent.find((one) => left.includes(one));
  if (left.length === 1) {
    return refuse('entry_ambiguous', `${shown(left, functions, lineOf)} may be the evaluator, but its parameter does not show what it needs`,
      'write its parameter as { output, expected }, with the names that it reads, or name another function in `settings.entry`');
  }
  if (unclear === undefined) {
    const every = left.map((name) => ({ name, found: /** @type {Found} */ (equal.find((one) => one.entry === name)) }));
    return together(every, [{ code: 'several_entries', message: `the score is the mean of ${shown(left, functions, lineOf)}; to use one of them, name it in \`settings.entry\`` }]);
  }
  return refuse('entry_ambiguous', `there are several functions that may be the evaluator: ${shown(left, functions, lineOf)}`,
    `name one in \`settings.entry\`, for example ${left[0]}, or \`*\` for all of them; ${unclear} has a parameter that does not show what it needs: write it as { output, expected }, if it is the evaluator`);
}

/** Return the offered functions that suit one of these dialects best: the matches with the lowest `step`. @param {Offer[]} offers @param {string[]} texts @param {import('./dialects/table.mjs').Dialect[]} dialects @param {boolean} [isDeclared] whether the contract is declared */
function bestOf(offers, texts, dialects, isDeclared = false) {
  const matches = matchesOf(offers, texts, dialects, isDeclared);
  const step = Math.min(...matches.map((one) => one.step));
  return matches.filter((one) => one.step === step);
}

/** @param {Offer[]} offers @param {string[]} texts the code, and the same as JavaScript @param {import('./dialects/table.mjs').Dialect[]} dialects @param {boolean} isDeclared */
function matchesOf(offers, texts, dialects, isDeclared) {
  const [code] = texts;
  const matches = [];
  const inLists = listed(texts);
  const functions = functionsOf(offers);
  const classes = classesIn(offers, 'exports');
  const byColumn = functions.some((one) => inLists.has(one.name) && (parametersOf(one).parameters.length > 1 || takesList(one)));
  const evaluate = lookUp(offers, 'evaluate');
  const own = evaluate !== null && parametersOf(evaluate).parameters.slice(0, 2).map((one) => one.name).join() === 'inputs,outputs';
  for (const dialect of dialects) {
    const candidates = dialect.entries.map((name) => ({ name, candidate: lookUp(offers, name) }));
    if (dialect.takesDefault) candidates.push({ name: 'default', candidate: defaultExport(offers, code) });
    // if the code has a function `evaluate(inputs, outputs, …)`, functions with other names are its helpers
    if (!own && (isDeclared ? dialect.takesAnyName : dialect.takesAnyName?.test(code))) {
      // the bundler has named an anonymous default export, so compare texts to leave it out
      const exported = dialect.takesDefault ? defaultExport(offers, code) : null;
      const others = new Set(offers.filter((one) => isCallable(one) && isIdentifier(one.name) && !OWN_NAMES.includes(one.name) && one.name !== 'default' && one.text !== exported?.text).map((one) => one.name));
      for (const name of others) if (!dialect.entries.includes(name)) candidates.push({ name, candidate: lookUp(offers, name) });
    }
    for (const { name, candidate } of candidates) {
      if (dialect.byName && (isHelper(name, functions) || isPartOf(candidate, classes))) continue;
      const inferred = candidate && dialect.infer(candidate, name, code, byColumn && inLists.has(name), isDeclared);
      if (inferred && 'step' in inferred && inferred.step < OWN) matches.push({ step: inferred.step, found: found(candidate, dialect, 'inferred', inferred.reason, inferred.byColumn) });
    }
  }
  return matches;
}

/** Return whether a function uses its only parameter as a list, so that the parameter cannot be a row. @param {import('./candidates.mjs').Function_}
 * one */
function takesList(one) {
  const { parameters } = parametersOf(one);
  const [first] = parameters;
  if (parameters.length !== 1 || first.keys !== null || first.rest) return false;
  const name = first.name.replace(/\$/g, '\\$&');
  return new RegExp(`(?<![\\w$.])${name}\\??\\.(?:every|filter|flatMap|forEach|map|reduce|some)\\(|\\bof\\s+${name}\\s*\\)`).test(one.text);
}

/**
 * @param {Offer[]} offers @param {string} contract @param {string | null} entry @param {string[]} texts the code, and the same as JavaScript
 * @param {(text: string) => number | null} lineOf @returns {Found | Refusal}
 */
function findDeclared(offers, contract, entry, texts, lineOf) {
  const dialect = DIALECTS.find((one) => one.contract === contract);
  if (!dialect) return refuse('entry_not_found', `contract ${contract} is not for this language`, 'set `contract` to auto');
  const names = entry === null ? dialect.entries : [entry];
  const known = names.map((name) => lookUp(offers, name)).find((one) => one !== null);
  const candidate = known ?? (entry === null ? defaultExport(offers) : null);
  if (candidate) return declaredAs(candidate, contract);
  const best = entry === null ? bestOf(offers, texts, [dialect], true) : [];
  const only = best.length === 0 && entry === null && !OWN_CONTRACTS.includes(contract) ? theOnlyFunction(offers) : null;
  if (only) return declaredAs(only, contract);
  if (best.length === 0) return notFound(offers, names, texts[0]);
  const declared = best.map((one) => ({ ...one.found, source: 'declared', reason: `contract ${contract} as declared` }));
  if (best[0].step === LISTED) return ofList(declared, offers, texts[0], lineOf);
  return theOnly(declared, [], functionsOf(offers), texts, lineOf);
}
