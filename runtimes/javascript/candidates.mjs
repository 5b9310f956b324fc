// @ts-check
/** Finds the functions of a file that may be the evaluator, by how the code uses them. */
import { parametersOf } from './parameters.mjs';
import { parse } from './parser.mjs';

/** @typedef {{name: string, text: string, length: number, exported: boolean}} Function_ a function that is exported or at module level */

const LISTS = new Set(('checks customEvaluators evals evaluator evaluators funcs graders metric metrics rewardFuncs rewardFunctions scorer scorers scores scoringFunctions '
  + 'custom_evaluators reward_funcs reward_functions scoring_functions').split(' '));
const SAYS = new RegExp(`\\b(?:${[...LISTS].join('|')})\\b`, 'i');
/** Matches the names of functions that seem to score, but not names such as `registerScorer`. */
export const SCORES = /^(?!register[A-Z_]).*?(?:^(?:assert|check|evaluate|judge|validate|verify)(?=[A-Z_])|(?:^|_)(?:assertion|assertions|check|checks|grade|grader|metric|reward|score|scorer)(?![a-z])|(?:Assertion|Assertions|Check|Checks|Grade|Grader|Metric|Reward|Score|Scorer)(?![a-z]))/;
const MOST_CHARS = 500_000;
const SHOWN = 10;

/**
 * Return the names of functions that may be the evaluator: those in a list of evaluators or, without a list, those that no other function uses. If
 * some are exported, only these count; names that begin with `_` count only if there are no others.
 *
 * @param {string[]} names @param {Function_[]} functions all functions of the file @param {string[]} texts the code, and the JavaScript compiled from
 * it (from which the bundler may have removed parts)
 * @returns {string[]}
 */
export function meant(names, functions, texts) {
  if (names.length < 2) return names;
  const own = new Set(functions.map((one) => one.name));
  const listed = new Set(texts.flatMap((one) => [...listedIn(one, own)]));
  const chosen = names.filter((one) => listed.has(one));
  if (chosen.length > 0) return chosen;
  const helpers = new Set(names.flatMap((one) => [...usedBy(one, functions)].filter((other) => other !== one)));
  const free = some(names, (one) => !helpers.has(one));
  const exported = some(free, (one) => functions.some((each) => each.name === one && each.exported));
  return some(exported, (one) => !one.startsWith('_'));
}

/** Return a text that lists several candidates, each with its parameters and line. @param {string[]} names @param {Function_[]} functions @param {(text: string) => number | null} lineOf */
export function shown(names, functions, lineOf) {
  const more = names.length > SHOWN ? ` and ${names.length - SHOWN} more` : '';
  return names.slice(0, SHOWN).map((name) => {
    const found = functions.find((one) => one.name === name);
    if (found === undefined) return name === 'default' ? 'the default export' : name;
    const parameters = parametersOf(found).parameters.map((one) => (one.rest ? `...${one.name}` : one.name));
    const line = lineOf(found.text);
    return `${name}(${parameters.slice(0, 8).join(', ')})${line === null ? '' : ` in line ${line}`}`;
  }).join(', ') + more;
}

/** Return the functions that use the function with this name. @param {string} name @param {Function_[]} functions @returns {string[]} */
export function usersOf(name, functions) {
  const uses = new RegExp(`(?<![\\w$.])${name.replace(/\$/g, '\\$&')}(?![\\w$])`);
  return functions.filter((one) => one.name !== name && uses.test(withoutHead(one.text))).map((one) => one.name);
}

/** Return the functions that a function uses, directly or through others. @param {string} name @param {Function_[]} functions */
export function usedBy(name, functions) {
  const found = /** @type {Set<string>} */ (new Set());
  const left = [name];
  for (let one = left.pop(); one !== undefined; one = left.pop()) {
    const text = withoutHead(functions.find((each) => each.name === one)?.text ?? '');
    const new_ = functions.filter((each) => each.name !== one && !found.has(each.name) && usersOf(each.name, [{ ...each, name: '', text }]).length > 0);
    for (const each of new_) found.add(each.name);
    left.push(...new_.map((each) => each.name));
  }
  return found;
}

/** Return a function without its own name. @param {string} text */
function withoutHead(text) {
  return text.replace(/^(?:async\s+)?function\s*\*?\s*[\w$]*/, '');
}

/** @param {string[]} names @param {(name: string) => boolean} test @returns {string[]} the names that pass the test, or all names if none passes */
function some(names, test) {
  const found = names.filter(test);
  return found.length > 0 ? found : names;
}

/** Return the functions in lists whose names say that they contain evaluators. @param {string[]} texts the code, and the same as JavaScript */
export function listed(texts) {
  return new Set(SAYS.test(texts[0]) ? texts.flatMap((one) => [...listedIn(one, new Set())]) : []);
}

/** Return the functions in lists of evaluators: lists with a key or name that says so, or lists of nothing but functions. @param {string} source @param {Set<string>} own names of functions */
function listedIn(source, own) {
  const found = /** @type {Set<string>} */ (new Set());
  const tree = source.length > MOST_CHARS ? null : parse(source, 'module') ?? parse(source);
  const add = (/** @type {string[]} */ names) => names.forEach((one) => found.add(one));
  const left = tree === null ? [] : [tree];
  for (let node = left.pop(); node !== undefined; node = left.pop()) {
    for (const value of Object.values(node)) for (const one of Array.isArray(value) ? value : [value]) if (typeof one?.type === 'string') left.push(one);
    const [name, value] = node.type === 'Property' && !node.computed ? [node.key.name ?? node.key.value, node.value]
      : node.type === 'VariableDeclarator' ? [node.id.name, node.init] : [null, null];
    if (typeof name !== 'string' || !value) continue;
    const names = members(value);
    const says = LISTS.has(name) || (node.type === 'VariableDeclarator' && LISTS.has(name.toLowerCase()));
    if ((says && !isOwn(name, names)) || (value.type === 'ArrayExpression' && names.length > 0 && names.every((one) => own.has(one)))) add(names);
  }
  return found;
}

/** Return whether a key has only the value of the same name, as in the export `{ scorer: scorer }`, which is not a list of evaluators. @param {string} name @param {string[]} names */
function isOwn(name, names) {
  return names.length === 1 && names[0] === name;
}

/** Return the names in a list; for a call in the list, the names of the function and of the arguments. @param {any} node @returns {string[]} */
function members(node) {
  switch (node?.type) {
    case 'Identifier': return [node.name];
    case 'ArrayExpression': return node.elements.flatMap(members);
    case 'ObjectExpression': return node.properties.flatMap((/** @type {any} */ one) => members(one.value));
    case 'CallExpression': case 'NewExpression': return [node.callee, ...node.arguments].flatMap(members);
    default: return [];
  }
}
