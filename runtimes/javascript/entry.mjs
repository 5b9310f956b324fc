// @ts-check
/**
 * Finds the entry of an evaluator among the functions that its module offers, and the dialect of the entry.
 *
 * A declared contract is used even if the parameters do not suit it. Code that fits two dialects gives an error that
 * names both.
 */
import { SCORES, listed, meant, shown, usedBy, usersOf } from './candidates.mjs';
import { lineForClass, lineForMade, makesEvaluators } from './classes.mjs';
import { isOutput, takesOutput, takesPair } from './dialects/function.mjs';
import { BY_NAME, LISTED, OWN } from './dialects/steps.mjs';
import { DIALECTS } from './dialects/table.mjs';
import { callsIn, comparedIn, madeBy, testedNames, unreadKeys } from './facts.mjs';
import { optionalNames } from './optional_names.mjs';
import { parametersOf, withoutUnderscore } from './parameters.mjs';
import { isProgramMain } from './programs.mjs';

/**
 * @typedef {{name: string, text: string, length: number}} Method
 * @typedef {{where: 'module'|'exports'|'declared'|'listed', name: string, kind: string, text: string, length: number, ownName: string, methods: Method[], at?: number, first?: number}} Offer
 *   `at`: its position in the lists that the code passes to its platform; `first`: the first position of the same value
 * @typedef {{where: string, name: string, method?: string, names?: string[], output?: string, needs?: string[], tested?: string[], compared?: ReturnType<typeof comparisonOf>[], params?: boolean, every?: Part[]}} Selector `names`: properties to pass one by one; `output`: the one that is the output;
 *   `needs`: properties that a row has to have; `tested`: those of them that the code can do without; `compared`: pairs of values of its arguments that it compares; `params`: whether the first argument is `appParams`; `every`: all evaluators of a file
 * @typedef {{name: string, selector: Selector, uses?: string[]}} Part one of several evaluators; `uses`: the others that it uses; set only for a part that runs only for rows with all that it needs
 * @typedef {{selector: Selector, label: string, name: string, text: string, length: number}} Candidate
 * @typedef {{contract: string, source: string, reason: string, entry: string, parameters: string[], selector: Selector, functions: {name: string, text: string}[], notes?: {code: string, message: string}[]}} Found
 * @typedef {{code: string, message: string, hint: string | null}} Refusal
 */

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

/** Return the names by which to look for an entry. @param {string | null} entry @param {string} code @param {string} [pasted] the code as it was
 * pasted */
export function wantedNames(entry, code, pasted = code) {
  const named = entry !== null && isIdentifier(entry) ? [entry] : [];
  const any = entry === EVERY || DIALECTS.some((one) => one.takesAnyName?.test(code)) ? declaredNames(code).slice(0, MOST_NAMES) : [];
  const listed = DIALECTS.flatMap((one) => one.listed?.(pasted) ?? []).map((one) => one.name);
  const taken = new Set([...KEYWORDS, ...declaredNames(code)]);
  const methods = METHODS_OF.test(code) ? [...code.matchAll(METHOD)].map((one) => one[1]).filter((one) => !taken.has(one) && !(one in globalThis)).slice(0, MOST_NAMES) : [];
  const made = listed.includes('') ? [...pasted.matchAll(CONSTANT)].map((one) => one[1]).slice(0, MOST_NAMES) : [];
  const classes = [...code.matchAll(CLASS)].map((one) => one[1]).slice(0, MOST_NAMES);
  return [...new Set([...usualNames(), ...named, ...classes, ...methods, ...any, ...listed.filter(isIdentifier), ...made])];
}

const MOST_NAMES = 50;
/** Matches the export of an object. */
const METHODS_OF = /^export\s+(?:default\s*\{|(?:const|let|var)\s[^=\n]{1,200}=\s*\{)/m;
/** Matches the head of a method, or a function under a key, at the start of a line. */
const METHOD = /^[ \t]{1,40}(?:async[ \t]{1,9})?([A-Za-z_$][\w$]{0,99})[ \t]{0,9}(?:\([^()]{0,300}\)[^;()\n]{0,100}\{|:[ \t]{0,9}(?:async\b|function\b|\())/gm;
/** Words that can be the name of a property, but not of a variable in a module. */
const KEYWORDS = [
  'arguments', 'await', 'break', 'case', 'catch', 'class', 'const', 'continue', 'debugger', 'default', 'delete', 'do', 'else', 'enum', 'eval', 'export',
  'extends', 'false', 'finally', 'for', 'function', 'if', 'implements', 'import', 'in', 'instanceof', 'interface', 'let', 'new', 'null', 'package',
  'private', 'protected', 'public', 'return', 'static', 'super', 'switch', 'this', 'throw', 'true', 'try', 'typeof', 'var', 'void', 'while', 'with', 'yield',
];
/** Matches a class at module level. */
const CLASS = /^(?:export\s+)?(?:default\s+)?class\s+([A-Za-z_$][\w$]*)/gm;
/** Matches a module-level variable; it may be in a list whose members the code does not write out. */
const CONSTANT = /^(?:export\s+)?(?:const|let|var)\s+([A-Za-z_$][\w$]*)/gm;
/** The entry that stands for all evaluators of a file. */
const EVERY = '*';

/** @param {string} name */
function isIdentifier(name) {
  return /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name);
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

/** Return what the module offers, with a name for each member of a list: the name in the list, the member's own name, or a name made from the
 * member's position. @param {Offer[]} offers @param {string} code @returns {Offer[]} */
function withNames(offers, code) {
  const members = offers.filter((one) => one.where === 'listed');
  const written = members.length === 0 ? [] : DIALECTS.flatMap((one) => one.listed?.(code) ?? []);
  const isWritten = written.length === members.length && written.every(({ text }) => !text.startsWith('...'));
  const taken = new Set(offers.filter((one) => one.where !== 'listed').map((one) => one.name));
  return offers.flatMap((one) => {
    if (one.where !== 'listed') return [one];
    const at = Number(one.at);
    if (!isWritten && one.first !== at) return [];
    const own = isIdentifier(one.ownName) && !taken.has(one.ownName) ? one.ownName : `scorer_${at}`;
    const name = (isWritten && written[at].name) || one.name || own;
    taken.add(name);
    return [{ ...one, name }];
  });
}

/** Let an evaluator be called without arguments that its types mark as optional, but not without required ones. @param {Selector} selector @param {string} name @param {string} code */
function leaveOptional(selector, name, code) {
  if (!selector.needs?.length) return;
  const { optional, required } = optionalNames(code, name);
  const left = new Set([...optional].map(withoutUnderscore));
  selector.needs = selector.needs.filter((one) => !left.has(one));
  selector.tested = selector.tested?.filter((one) => !required.has(one));
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
function othersOfColumns(offers, taken) {
  const functions = functionsOf(offers).filter((one) => one.exported && !/^_|^default$/.test(one.name) && !PREPARES.test(one.name) && !taken.includes(one.name) && madeBy(one.text) === null);
  const likely = functions.filter(({ name }) => SCORES.test(name) || wordsOf(name).some((word) => LIKELY.test(word)));
  const found_ = likely.flatMap(({ name }) => lookUp(offers, name) ?? []).filter((one) => {
    const { parameters } = parametersOf(one);
    return parameters.some((each) => !each.optional) && parameters.every((each) => each.keys === null && !each.rest);
  });
  return found_.map((one) => ({
    name: one.name, uses: [...usedBy(one.name, functionsOf(offers))],
    found: found(one, BY_PARAMETERS, 'inferred', `${one.label} has parameters that name properties of the row`, true),
  }));
}

/** Return the only exported function that takes the output, and other properties of the row. @param {Offer[]} offers @returns {Candidate | null} */
function theOnlyTaker(offers) {
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

/** Add the functions to call for rows that lack what the found evaluators need; if only one was found, only functions that it uses. @param {Found | Refusal} answer @param {Offer[]} offers @returns {Found | Refusal} */
function withOthers(answer, offers) {
  if (!('contract' in answer) || answer.contract !== BY_PARAMETERS.contract) return answer;
  const own = answer.selector.every?.map((one) => one.name) ?? [answer.entry];
  const used = answer.selector.every ? null : usedBy(answer.entry, functionsOf(offers));
  const others = othersOfColumns(offers, own).filter((one) => used === null || used.has(one.name));
  const parts = answer.selector.every ?? [{ name: answer.entry, selector: answer.selector }];
  if (others.length === 0 || parts.some((one) => !one.selector.needs?.length)) return answer;
  return {
    ...answer, entry: EVERY, functions: [...answer.functions, ...others.flatMap((one) => one.found.functions)],
    parameters: answer.selector.every ? answer.parameters : [`${answer.entry}(${answer.parameters.join(', ')})`],
    selector: { where: 'every', name: EVERY, every: [...parts, ...others.map(({ name, found: one, uses }) => ({ name, selector: one.selector, uses }))] },
  };
}

const BY_PARAMETERS = /** @type {import('./dialects/table.mjs').Dialect} */ (DIALECTS.find((one) => one.contract === 'function'));
/**
 * Return the exported functions that no other one uses, and whose names say that they score, or that take an output and a ground truth. Their parameters then
 * name properties of the row. A function that makes an evaluator, or has no parameters, is not returned, and may use the returned ones.
 *
 * @param {Offer[]} offers @returns {Candidate[]}
 */
function thoseThatScore(offers) {
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
function runnerOf(equal, offers) {
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
function methodsThatScore(offers, code) {
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

/** Return one entry that calls all evaluators of a file: public functions that no other one of them uses. @param {Offer[]} offers @param {string} contract @param {string} code @returns {Found | Refusal} */
function findEvery(offers, contract, code) {
  const names = functionNames(offers).filter((name) => !/^_|^default$/.test(name));
  const every = /** @type {{name: string, found: Found}[]} */ ([]);
  const notes = [];
  for (const name of names.slice(0, MOST_NAMES)) {
    const candidate = /** @type {Candidate} */ (lookUp(offers, name));
    if (usersOf(name, functionsOf(offers)).length > 0) continue;
    const best = contract === 'auto' ? mostCertain(candidate, name, code) : declaredAs(candidate, contract);
    const answer = 'found' in best ? best.found : best;
    if ('code' in answer) notes.push({ code: 'not_an_entry', message: `${name} is not called, because it is not an evaluator: ${answer.message}` });
    else every.push({ name, found: answer });
  }
  return every.length === 0 ? notFound(offers, ['evaluate'], code) : together(every, notes);
}

/** Return one entry that calls several evaluators with the same row. @param {{name: string, found: Found, uses?: string[]}[]} every @param {{code: string, message: string}[]} notes @returns {Found | Refusal} */
function together(every, notes) {
  const contracts = [...new Set(every.map((one) => one.found.contract))];
  if (contracts.length > 1) {
    const told = every.slice(0, 10).map((one) => `${one.name} (${one.found.contract})`);
    return refuse('entry_ambiguous', `the evaluators have different contracts: ${told.join(', ')}`, `set \`contract\` to one of ${contracts.join(', ')}`);
  }
  const { contract: own, source, reason } = every[0].found;
  return {
    contract: own, source, reason: `${every.length} evaluators: ${every.map((one) => one.name).join(', ')}; ${reason}`, entry: EVERY, notes,
    parameters: every.map(({ name, found: one }) => `${name}(${one.parameters.join(', ')})`),
    functions: every.flatMap(({ found: one }) => one.functions),
    selector: { where: 'every', name: EVERY, every: every.map(({ name, found: one, uses }) => ({ name, selector: one.selector, ...(uses && { uses }) })) },
  };
}

/** Return one entry that calls all evaluators in the list that the code passes to its platform. @param {Found[]} equal @param {Offer[]} offers @param
 * {string} code @param {(text: string) => number | null} lineOf @returns {Found | Refusal} */
function ofList(equal, offers, code, lineOf) {
  const members = offers.filter((one) => one.where === 'listed').map(({ name }) => ({ name, text: name }));
  const written = DIALECTS.find((one) => one.contract === equal[0].contract)?.listed?.(code) ?? [];
  const listed = members.length > 0 ? members : written;
  const functions = functionsOf(offers);
  const every = [...new Set(listed.map((one) => one.name))].flatMap((name) => equal.filter((one) => one.entry === name).slice(0, 1).map((found) => ({ name, found })));
  const lacking = listed.filter((one) => !every.some(({ name }) => name === one.name));
  const notes = lacking.map(({ text }) => ({ code: 'entry_left_out', message: `${text.slice(0, 80)} is in the list of evaluators, but is not called, because it is not a function of the loaded code` }));
  if (every.length === 0) return notFound(offers, listed.map((one) => one.text), code);
  if (every.length === 1) return { ...every[0].found, entry: every[0].name, notes };
  const names = every.map((one) => one.name);
  return together(every, [{ code: 'several_entries', message: `the score is the mean of ${shown(names, functions, lineOf)}; to use one of them, name it in \`settings.entry\`` }, ...notes]);
}

/** @param {Offer[]} offers @returns {string[]} */
function functionNames(offers) {
  return [...new Set(offers.filter((one) => isCallable(one) && isIdentifier(one.name)).map((one) => one.name))];
}

/** @param {Offer[]} offers @returns {import('./candidates.mjs').Function_[]} */
function functionsOf(offers) {
  return functionNames(offers).map((name) => {
    const { text, length } = /** @type {Candidate} */ (lookUp(offers, name));
    const exported = offers.some((one) => one.where !== 'declared' && one.where !== 'listed' && (one.name === name || (isWhole(one) && one.methods.some((each) => each.name === name))));
    return { name, text, length, exported };
  });
}

/**
 * Return functions that no other function uses, and whose only parameter has a name without a meaning: each may be the
 * evaluator, just as those that are recognised by the names of their parameters.
 *
 * @param {Found[]} named @param {Offer[]} offers @param {string} code @returns {string[]}
 */
function silentOf(named, offers, code) {
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

/** @param {Candidate} candidate @param {string} name @param {string} code @returns {{step: number, found: Found} | Refusal} */
function mostCertain(candidate, name, code) {
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
function inferNamed(candidate, name, offers, code, isWished = false) {
  if (candidate.selector.where === 'listed' || isAssert(candidate, code)) return infer(candidate, name, code);
  const best = mostCertain(candidate, name, code);
  if ('step' in best && best.step < OWN) return best.found;
  if (takesProperties(candidate, name, offers) || (isWished && takesParts(candidate, name))) {
    return found(candidate, BY_PARAMETERS, 'inferred', `${candidate.label} has parameters that name properties of the row`, true);
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
  const { parameters } = parametersOf(candidate);
  const functions = functionsOf(offers);
  const isOffered = candidate.selector.where !== 'declared' || functions.some((one) => one.name === name && one.exported) || !functions.some((one) => one.exported);
  const says = parameters.every((one) => one.keys === null && !one.rest && withoutUnderscore(one.name).length > 2);
  const [first, , third] = parameters;
  const isByPosition = parameters.length === 3 && (!takesOutput(candidate) || withoutUnderscore(third.name) === 'trace');
  return isOffered && says && !isByPosition && first !== undefined && !OWN_NAMES.includes(name) && !POSITIONS.test(withoutUnderscore(first.name));
}

/** Return whether the only parameter of a function takes properties of an object: `({ output, llm })`. @param {Candidate} candidate @param {string} name */
function takesParts(candidate, name) {
  const { parameters } = parametersOf(candidate);
  return parameters.length === 1 && !parameters[0].rest && (parameters[0].keys?.length ?? 0) > 0 && !OWN_NAMES.includes(name);
}

/** @param {Candidate} candidate @param {string} contract @returns {Found | Refusal} */
function declaredAs(candidate, contract) {
  const dialect = DIALECTS.find((one) => one.contract === contract);
  return dialect ? found(candidate, dialect, 'declared', `contract ${contract} as declared`) : refuse('entry_not_found', `contract ${contract} is not for this language`, 'set `contract` to auto');
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

/** Names of the functions that this product's own contracts call. */
const OWN_NAMES = ['evaluate', 'main'];
const OWN_CONTRACTS = ['evaluate', 'evaluate-v1', 'main'];

/**
 * Return whether a function is only a helper of an exported function: it is not exported itself, and an exported function uses it. If the exported
 * function scores and has known parameters, it may also use it through other functions.
 *
 * @param {string} name @param {import('./candidates.mjs').Function_[]} functions
 */
function isHelper(name, functions) {
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
 * Return whether a function is a part of an exported class: it takes the output apart for a method, or a class that makes evaluators calls it, and never with the output.
 *
 * @param {Candidate | null} candidate @param {import('./candidates.mjs').Function_[]} classes
 */
function isPartOf(candidate, classes) {
  const words = wordsOf(candidate?.name ?? '');
  if (candidate?.selector.where !== 'declared' || SCORES.test(candidate.name) || words.some((one) => TESTS.test(one) || LIKELY.test(one))) return false;
  const isApart = takesOutput(candidate) && parametersOf(candidate).parameters.length === 1 && words.some((one) => TAKES_APART.test(one));
  return classes.some(({ text }) => {
    const calls = callsIn(text).filter((one) => one.name === candidate.name);
    return calls.length > 0 && (isApart || (makesEvaluators(text) && !calls.some(({ given }) => given.length === 0 || given.some(isOutput))));
  });
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

/** @returns {string[]} the names by which functions of any dialect are looked for */
function usualNames() {
  return [...new Set(DIALECTS.flatMap((one) => one.entries))].sort();
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

/** Return the only exported function that no other one uses, or the only function of code without exports. @param {Offer[]} offers @returns {Candidate | null} */
function theOnlyFunction(offers) {
  const functions = functionsOf(offers).filter((one) => one.name !== 'default' && !one.name.startsWith('_'));
  const exported = functions.filter((one) => one.exported);
  const free = (exported.length ? exported : functions).filter((one) => usersOf(one.name, functions).length === 0);
  return free.length === 1 ? lookUp(offers, free[0].name) : null;
}

/** @param {Offer[]} offers @param {string} name @returns {Candidate | null} the first found among members of lists, exports, names of the module, methods */
function lookUp(offers, name) {
  for (const where of ['listed', 'exports', 'declared']) {
    const offer = offers.find((one) => one.where === where && one.name === name && isCallable(one));
    if (offer) return { selector: { where, name: String(offer.at ?? name) }, label: `function ${name}`, name, text: offer.text, length: offer.length };
  }
  for (const offer of offers) {
    const method = offer.methods.find((one) => one.name === name);
    if (!method || !(isWhole(offer) || offer.name === name || isOnlyHolder(offers, name))) continue;
    return { selector: { where: offer.where, name: offer.name, method: name }, label: `method ${name}`, name, text: method.text, length: method.length };
  }
  return null;
}

/** Return whether one exported object of a file has a method of this name. @param {Offer[]} offers @param {string} name */
function isOnlyHolder(offers, name) {
  return offers.filter((one) => one.where === 'exports' && one.methods.some((each) => each.name === name)).length === 1;
}

/** @param {Offer[]} offers @param {string} [code] @returns {Candidate | null} the one function that the module itself is, or the only member of its `module.exports` */
function defaultExport(offers, code = '') {
  const members = /\bmodule\.exports\b|(?<![.\w$])exports\./.test(code) ? offers.filter((one) => one.where === 'exports') : [];
  const offer = offers.find((one) => (one.where === 'module' || (one.where === 'exports' && one.name === 'default')) && isCallable(one)) ?? (members.length === 1 ? members.find(isCallable) : undefined);
  if (!offer) return null;
  return { selector: { where: offer.where, name: offer.name }, label: 'the default export', name: offer.ownName || 'default', text: offer.text, length: offer.length };
}

/** @param {Offer} offer @returns {boolean} whether it is what the module exports as a whole */
function isWhole(offer) {
  return offer.where === 'module' || offer.name === 'default';
}

/** @param {Offer[]} offers @param {'exports' | 'declared'} where @returns {import('./candidates.mjs').Function_[]} classes, as functions */
function classesIn(offers, where) {
  const classes = offers.filter((one) => one.where === where && one.kind === 'function' && !isCallable(one));
  const named = classes.map(({ name, ownName, text, length }) => ({ name: name === 'default' ? ownName : name, text, length, exported: where === 'exports' }));
  return named.filter((one) => isIdentifier(one.name) && one.name !== 'default');
}

/** @param {Offer} offer */
function isCallable(offer) {
  return offer.kind === 'function' && !/^class\b/.test(offer.text);
}

/** @param {Candidate} candidate @param {string} name the name by which it was found @param {string} code @returns {Found | Refusal} */
function infer(candidate, name, code) {
  for (const dialect of candidate.selector.where === 'listed' ? DIALECTS.filter((one) => one.listed) : DIALECTS) {
    const inferred = dialect.infer(candidate, name, code);
    if (inferred) return 'code' in inferred ? inferred : found(candidate, dialect, 'inferred', inferred.reason);
  }
  return refuse('entry_not_found', `${candidate.label} fits no known contract`, 'set `contract`');
}

/** @param {Candidate} candidate @param {string} code @returns {Found | Refusal} */
function inferDefault(candidate, code) {
  const { parameters } = parametersOf(candidate);
  if (!OWN_NAMES.includes(candidate.name) && parameters.length === 1 && !parameters[0].rest) {
    return refuse('entry_ambiguous', 'the default export takes one parameter, so it may be evaluate(inputs) or main(variables)', 'write its parameter as { output, expected }, with the names that it reads, name the function evaluate or main, or set `contract`');
  }
  return infer(candidate, candidate.name, code);
}

/** @param {Candidate} candidate @param {import('./dialects/table.mjs').Dialect} dialect @param {string} source @param {string} reason @param {boolean} [byColumn] whether a single parameter is a property of the row, not the row itself @returns {Found} */
function found(candidate, dialect, source, reason, byColumn = false) {
  const { parameters } = parametersOf(candidate);
  const keys = dialect.takesOneObject && parameters.length === 1 ? parameters[0].keys : null;
  const whole = byColumn ? null : dialect.readsOfWhole?.(candidate) ?? null;
  const unread = dialect.byName && keys !== null ? unreadKeys(candidate.text) : [];
  const apart = dialect.byName && parameters.every((one) => one.keys === null) && whole === null;
  const passed = parameters.map((one) => withoutUnderscore(one.name));
  const needs = dialect.byName ? whole ?? parameters.filter((one) => !one.optional).flatMap((one) => one.required ?? (apart ? [withoutUnderscore(one.name)] : [])).filter((one) => !unread.includes(one)) : [];
  const tested = needs.length > 0 ? testedNames(candidate.text).map(withoutUnderscore).filter((one) => needs.includes(one)) : [];
  const selector = {
    ...candidate.selector,
    ...(dialect.contract === 'evaluate-v1' ? { params: true } : {}),
    ...(apart ? { names: passed, output: dialect.outputOf?.(passed) } : {}),
    ...(dialect.byName ? { needs } : {}),
    ...(tested.length > 0 ? { tested } : {}),
  };
  const names = keys?.length ? keys : parameters.map((one) => (one.rest ? `...${one.name}` : one.name));
  return { contract: dialect.contract, source, reason, entry: candidate.name, parameters: names.slice(0, 100), selector, functions: [{ name: candidate.name, text: candidate.text }] };
}

/** For contracts that pass the row's own columns: the position of the argument that is the output; -1 if there is no such argument. @type {Record<string, number>} */
const PLACES_OF_OUTPUT = { evaluate: 1, 'evaluate-v1': 2, main: -1 };

/** @param {import('./facts.mjs').Pair} pair @param {string} contract */
function comparisonOf({ sides, others, isOptional }, contract) {
  const found = (/** @type {import('./facts.mjs').Part[]} */ parts) => parts.map((one) => sideOf(one, contract));
  return { sides: found(sides), others: others.map(found), isOptional };
}

/**
 * Return where the runner finds one of two compared values; `mayLack`: whether it is in the output that the evaluator scores, or in a platform's own row, which need not have an expected answer.
 *
 * @param {import('./facts.mjs').Part} part @param {string} contract
 */
function sideOf({ at, of, keys, text }, contract) {
  const place = PLACES_OF_OUTPUT[contract];
  return { at, keys, text: text.slice(0, 80), mayLack: place === undefined || place === at || [of, ...keys].some(isOutput) };
}

/** @param {Offer[]} offers @param {string[]} names @param {string} code @returns {Refusal} */
function notFound(offers, names, code) {
  const wanted = names.join(' or ');
  const wrongKind = offers.find((one) => names.includes(one.name) && !isCallable(one));
  if (wrongKind) {
    const what = /^class\b/.test(wrongKind.text) ? 'a class' : `a ${wrongKind.kind}`;
    return refuse('entry_not_found', `${wrongKind.name} is ${what}, not a function`, `define function ${wrongKind.name}(…), or export an instance with such a method`);
  }
  const makers = makersIn(offers, code);
  if (makers.length > 0) {
    const shown = makers.slice(0, MOST_SHOWN).map((one) => `${one.name}(${headOf(one)})`);
    const example = makers.find(({ text }) => [...madeBy(text)?.parameters ?? [], ...madeBy(text)?.keys ?? []].some((each) => each !== null && isOutput(each))) ?? makers[0];
    return refuse('entry_not_found', `no function ${wanted} was found; the code defines functions that make evaluators: ${shown.join(', ')}`, `add \`${lineFor(example)}\` as the last line, with the arguments that ${example.name} takes`);
  }
  const own = classesIn(offers, 'exports');
  const classes = functionsOf(offers).some((one) => one.exported) ? [] : own.length > 0 ? own : classesIn(offers, 'declared');
  const lines = classes.flatMap((one) => lineForClass(one.name, one.text) ?? []);
  if (lines.length > 0) {
    return refuse('entry_not_found', `no function ${wanted} was found; the code defines the class${classes.length > 1 ? 'es' : ''} ${classes.slice(0, MOST_SHOWN).map((one) => one.name).join(', ')}`, `the host does not call classes: add \`${lines[0]}\` as the last line${lines[0].includes('…') ? ', with arguments in place of …' : ''}`);
  }
  const near = nearMisses(offers, code);
  if (near.length === 0 && offers.some((one) => one.name === 'default' && one.kind === 'object')) {
    return refuse('entry_not_found', `no function ${wanted} was found; the default export is an object without it`, 'name the function of the object in `settings.entry`, or export the function by itself');
  }
  const holder = near.length === 0 ? offers.find((one) => one.where === 'exports' && one.kind === 'object' && one.methods.length > 0) : undefined;
  if (holder) {
    const methods = holder.methods.map((one) => one.name);
    return refuse('entry_not_found', `no function ${wanted} was found; the exported object ${holder.name} has ${methods.slice(0, MOST_SHOWN).join(', ')}`, `name one of them in \`settings.entry\`, for example ${methods[0]}`);
  }
  const seen = near.length ? `; the code defines ${near.join(', ')}` : '';
  const exported = near.filter((name) => offers.some((one) => one.where === 'exports' && one.name === name && isCallable(one)));
  const functions = functionsOf(offers);
  const likely = (/** @type {string} */ name) => Number(SCORES.test(name)) * 2 + Number(/verdict/i.test(name)) + Number(usersOf(name, functions).length === 0) - Number(MAKES.test(name));
  const [example] = [...exported, ...(exported.length ? [] : near)].sort((one, other) => likely(other) - likely(one));
  return refuse('entry_not_found', `no function ${wanted} was found${seen}`, near.length > 1 ? `name the evaluator in \`settings.entry\`, for example ${example}` : near.length ? `rename it to ${names[0]}, or name it in \`settings.entry\`` : 'define function evaluate(inputs, outputs, trace) or main(variables)');
}

/** Return the exported functions that make an evaluator, if no exported function scores by itself, in the order of the code. @param {Offer[]} offers @param {string} code @returns {import('./candidates.mjs').Function_[]} */
function makersIn(offers, code) {
  const exported = functionsOf(offers).filter((one) => one.exported && one.name !== 'default');
  const makers = exported.filter((one) => madeBy(one.text) !== null).sort((one, other) => code.indexOf(one.name) - code.indexOf(other.name));
  return exported.some((one) => SCORES.test(one.name) && !makers.includes(one)) ? [] : makers;
}

/** Return the parameters of a function as they are written in a call. @param {{text: string, length: number}} one */
function headOf(one) {
  return parametersOf(one).parameters.filter((each) => !each.rest).map((each) => each.name).slice(0, MOST_SHOWN).join(', ');
}

/** Return a line of code that makes an evaluator, and passes the row to it. @param {import('./candidates.mjs').Function_} maker */
function lineFor(maker) {
  return lineForMade(`${maker.name}(${parametersOf(maker).parameters.length > 0 ? '…' : ''})`, /** @type {NonNullable<ReturnType<typeof madeBy>>} */ (madeBy(maker.text)));
}

/** First words in the names of functions that make something for other functions. */
const MAKES = /^(?:build|create|define|format|load|make|parse|register)[A-Z_]/;
const MOST_SHOWN = 8;

/** @param {Offer[]} offers @param {string} code @returns {string[]} */
function nearMisses(offers, code) {
  const names = [...offers.filter(isCallable).map((one) => one.name), ...declaredNames(code)];
  return [...new Set(names.filter((name) => name !== '' && name !== 'default'))].slice(0, 8);
}

/** @param {string} code @returns {string[]} names of functions that the code declares, at any depth */
export function declaredNames(code) {
  const declared = code.matchAll(/^[ \t]*(?:export\s+)?(?:default\s+)?(?:async\s+)?(?:function\s*\*?\s*|(?:const|let|var)\s+(?=[\w$]+\s*(?::[^=\n]{1,200})?=\s*(?:async\b|function\b|\(|[\w$]+\s*=>)))([\w$]+)/gm);
  return [...declared].map((match) => match[1]);
}

/** @param {string} code @param {string} message @param {string} hint @returns {Refusal} */
function refuse(code, message, hint) {
  return { code, message, hint };
}
