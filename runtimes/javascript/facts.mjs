// @ts-check
/**
 * Reads facts about code from its syntax tree: what functions do with their arguments, and with parts of the arguments.
 *
 * The host derives its warnings from these facts; only the host knows what names mean.
 *
 * @typedef {import('./nodes.mjs').Node} Node
 * @typedef {import('./outline.mjs').Function_} Function_
 * @typedef {import('./outline.mjs').Known} Known
 * @typedef {import('./outline.mjs').Read} Read
 * @typedef {import('./outline.mjs').Uses} Uses
 * @typedef {{name: string, line: number | null, rest: boolean, parameters: {name: string, read: boolean, tested: boolean, keys: string[], compared: string[]}[]}} Facts
 */
import { FUNCTIONS, MOST_CHARS, functionIn, namesIn, orNothing } from './nodes.mjs';
import { CHARS, MOST_NAMES, Outline, unused } from './outline.mjs';
import { parametersOf } from './parameters.mjs';
import { parse } from './parser.mjs';

const MOST_SOURCE_CHARS = 50_000; // maximum length of code that is parsed as a whole; of longer code, only the functions that a row calls
/** Names of methods that score. */
const SCORING = new Set(['assert', 'check', 'evaluate', 'grade', 'judge', 'measure', 'run', 'score', 'validate']);

/**
 * Return facts about functions, and what the code reads by constant names. Code that cannot be parsed is left out.
 *
 * @param {{name: string, text: string, written?: string}[]} functions `text`: as it is in the source; `written`: with the names that the user wrote
 * @param {string} source the JavaScript code that contains the functions; if it is too long, only the functions are parsed
 * @param {(text: string) => number | null} lineOf returns the line in the user's code at which a function's text begins
 * @returns {{facts: Facts[], reads: Read[]}}
 */
export function factsOf(functions, source, lineOf) {
  const outline = (source.length > MOST_SOURCE_CHARS ? null : orNothing(() => outlineOf(source))) ?? new Outline();
  let left = MOST_CHARS;
  const facts = functions.flatMap(({ name, text, written }) => {
    left -= text.length;
    const found = left < 0 ? null : outline.find(source, text) ?? orNothing(() => outline.readFunction(text));
    return found === null ? [] : [{ name: name.slice(0, CHARS), line: lineOf(text), ...factsIn(found, written ?? text) }];
  });
  return { facts, reads: outline.reads() };
}

/** @param {string} source @returns {Outline | null} */
function outlineOf(source) {
  const tree = parse(source);
  if (tree === null) return null;
  const outline = new Outline();
  outline.read(tree, new Map());
  return outline;
}

/** @param {Function_} found @param {string} text */
function factsIn({ uses, rest }, text) {
  const names = parametersOf({ text, length: 0 }).parameters.filter((one) => !one.rest).map((one) => one.name);
  return {
    rest: rest.read,
    parameters: uses.map((one, at) => ({ name: (names[at] ?? '').slice(0, CHARS), read: one.read, tested: one.tested, keys: listed(one.keys), compared: listed(one.compared) })),
  };
}

/** Return the keys that a function takes out of its one object and never reads. @param {string} text @returns {string[]} */
export function unreadKeys(text) {
  return orNothing(() => {
    const node = text.length > MOST_CHARS ? null : functionIn(text);
    const pattern = node?.params.length === 1 ? node.params[0].left ?? node.params[0] : null;
    return node !== null && pattern?.type === 'ObjectPattern' ? unreadOf(node, pattern) : [];
  }) ?? [];
}

/**
 * Return the parameters of a function that its code can do without, because it tests them or gives them a default (`limit ?? 5`, `if (!limit)`). For a function that
 * takes one object, return the properties.
 *
 * @param {string} text @returns {string[]}
 */
export function testedNames(text) {
  return orNothing(() => {
    const node = text.length > MOST_CHARS ? null : functionIn(text);
    return node === null ? [] : testedIn(node);
  }) ?? [];
}

/** @param {Node} node @returns {string[]} */
function testedIn(node) {
  const outline = new Outline();
  /** @type {Known} */
  const known = new Map();
  const patterns = node.params.map((/** @type {Node} */ one) => one.left ?? one);
  const parts = patterns.length === 1 && patterns[0].type === 'ObjectPattern' ? patterns[0].properties.filter((/** @type {Node} */ one) => one.type === 'Property' && !one.computed)
    : patterns.map((/** @type {Node} */ value) => ({ key: value, value }));
  const plain = parts.filter((/** @type {Node} */ one) => (one.value.left ?? one.value).type === 'Identifier');
  const bound = plain.map((/** @type {Node} */ one) => ({ key: String(one.key.name ?? one.key.value), uses: outline.declare(one.value, known) }));
  outline.read(node.body, known);
  const own = bound.filter((/** @type {{uses: Uses}} */ { uses }) => uses.tested || uses.asked).map((/** @type {{key: string}} */ one) => one.key);
  return patterns.length === 1 && patterns[0].type === 'Identifier' ? outline.testedOf(patterns[0].name) : own;
}

/**
 * Return the function that a factory function makes: the function that it returns, or a scoring method of the object that it returns; null if it
 * makes none.
 *
 * @param {string} text @returns {{method: string, parameters: (string | null)[], keys: string[]} | null} `method`: the name of the made function in
 * the object, or ''; `keys`: what the made function reads from its only parameter
 */
export function madeBy(text) {
  return orNothing(() => {
    const made = returnedIn(text);
    const scoring = made?.type === 'ObjectExpression' ? made.properties.find((/** @type {Node} */ one) => one.type === 'Property' && !one.computed && SCORING.has(one.key.name) && FUNCTIONS.has(one.value.type)) : null;
    const node = scoring?.value ?? made;
    if (!FUNCTIONS.has(node?.type)) return null;
    const outline = new Outline();
    outline.read(node, new Map());
    const [first] = node.params;
    return {
      method: scoring?.key.name ?? '', parameters: node.params.map((/** @type {Node} */ one) => (one.left ?? one).name ?? null),
      keys: node.params.length !== 1 ? [] : first.type === 'Identifier' ? outline.keysOf(first.name) : namesIn(first).map(String),
    };
  });
}

/** Return the value of a function's last `return`. @param {string} text @returns {Node | undefined} */
function returnedIn(text) {
  const { body } = (text.length > MOST_CHARS ? null : functionIn(text)) ?? {};
  return body?.type === 'BlockStatement' ? body.body.findLast((/** @type {Node} */ one) => one.type === 'ReturnStatement')?.argument : body;
}

/** @param {Node} node @param {Node} pattern the parameter, as it is destructured @returns {string[]} */
function unreadOf(node, pattern) {
  const outline = new Outline();
  /** @type {Known} */
  const known = new Map();
  const plain = pattern.properties.filter((/** @type {Node} */ one) => one.type === 'Property' && !one.computed && one.value.type === 'Identifier');
  const bound = plain.map((/** @type {Node} */ one) => ({ key: String(one.key.name ?? one.key.value), uses: outline.declare(one.value, known) }));
  const whole = unused(null, '');
  if (node.type !== 'ArrowFunctionExpression') known.set('arguments', [whole]);
  for (const one of pattern.properties) if (!plain.includes(one)) outline.read(one, known); // a default may read another key
  outline.read(node.body, known);
  return whole.read ? [] : bound.filter((/** @type {{uses: Uses}} */ one) => !one.uses.read).map((/** @type {{key: string}} */ one) => one.key);
}

/** @param {Set<string>} names */
function listed(names) {
  return [...names].slice(0, MOST_NAMES).map((one) => one.slice(0, CHARS));
}
