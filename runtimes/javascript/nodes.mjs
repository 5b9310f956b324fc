// @ts-check
/**
 * Reads functions and expressions from a syntax tree.
 *
 * V8 gives a function's text without types, so one parser reads JavaScript and TypeScript: acorn, which comes with Node.
 *
 * @typedef {{type: string, [field: string]: any}} Node a node of an ESTree
 */
import { parse } from './parser.mjs';

export const MOST_CHARS = 200_000; // maximum length of the code of all functions together
export const EITHER = ['==', '===', '!=', '!=='];
export const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);
const GETTERS = ['get', 'hasOwn', 'hasOwnProperty'];
export const SAME = ['trim', 'toLowerCase', 'toUpperCase']; // methods that return the same text in another form

/** Return what a function returns, or null if the code is nested too deeply. @template T @param {() => T | null} read @returns {T | null} */
export function orNothing(read) {
  try {
    return read();
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** @param {Node} node */
export function isFunction(node) {
  return FUNCTIONS.has(node.type);
}

/** Return the syntax tree of a function, an arrow function or a method. @param {string} text @returns {Node | null} */
export function functionIn(text) {
  for (const whole of [`(${text}\n)`, `({${text}\n})`, `(class extends Object {${text}\n})`]) {
    const found = parse(whole)?.body[0]?.expression;
    const node = found?.type === 'ObjectExpression' ? found.properties[0]?.value : found?.type === 'ClassExpression' ? found.body.body[0]?.value : found;
    if (FUNCTIONS.has(node?.type)) return node;
  }
  return null;
}

/**
 * Return the functions that a class calls by a name, or passes to others.
 *
 * @param {string} text @returns {{name: string, given: string[]}[]} `given`: the names of its arguments, or of the properties that they read
 */
export function callsIn(text) {
  const tree = text.length > MOST_CHARS ? null : parse(`(${text})`);
  const calls = tree === null ? [] : nodesIn(tree).filter((one) => one.type === 'CallExpression');
  return calls.flatMap(({ callee, arguments: given }) => [callee, ...given].flatMap((one) => (
    one.type !== 'Identifier' ? [] : { name: one.name, given: one !== callee ? [] : given.flatMap((/** @type {Node} */ each) => each.name ?? readOf(each)?.key ?? []) }
  )));
}

/** Return a node and all expressions and statements in it. @param {Node} node @returns {Node[]} */
export function nodesIn(node) {
  /** @type {Node[]} */
  const found = [];
  const left = [node];
  for (let one = left.pop(); one; one = left.pop()) {
    found.push(one);
    for (const part of partsOf(one).reverse()) left.push(part);
  }
  return found;
}

/** Return the value from which an expression reads, and the constant name that it reads. @param {Node} node @returns {{of: Node, key: string} | null} */
export function readOf(node) {
  const whole = node.type === 'ChainExpression' ? node.expression : node;
  if (whole.type === 'MemberExpression') {
    const { object, property, computed } = whole;
    const key = computed ? property.value : property.name;
    return typeof key === 'string' ? { of: object, key } : null;
  }
  if (whole.type !== 'CallExpression' || whole.callee.type !== 'MemberExpression' || !GETTERS.includes(whole.callee.property.name)) return null;
  const [of, key] = whole.arguments.length > 1 ? whole.arguments : [whole.callee.object, whole.arguments[0]];
  return typeof key?.value === 'string' ? { of, key: key.value } : null;
}

/** Return the expressions whose value another expression may have, perhaps in another form: `x` for `x.trim()`. @param {Node} node @returns {Node[]} */
export function alternativesOf(node) {
  switch (node.type) {
    case 'ChainExpression': return [node.expression];
    case 'AwaitExpression': return [node.argument];
    case 'LogicalExpression': return [node.left, node.right];
    case 'ConditionalExpression': return [node.consequent, node.alternate];
    case 'CallExpression': return SAME.includes(node.callee.property?.name) ? [node.callee.object] : [];
    default: return [];
  }
}

/** @param {Node} pattern @returns {string[]} */
export function namesIn(pattern) {
  if (pattern.type === 'Identifier') return [pattern.name];
  return partsOf(pattern).flatMap(namesIn);
}

/** Return the expressions in a pattern: defaults, and keys that are computed. @param {Node} pattern @returns {Node[]} */
export function expressionsIn(pattern) {
  switch (pattern.type) {
    case 'Identifier': return [];
    case 'AssignmentPattern': return [...expressionsIn(pattern.left), pattern.right];
    case 'Property': return [...(pattern.computed ? [pattern.key] : []), ...expressionsIn(pattern.value)];
    default: return partsOf(pattern).flatMap(expressionsIn);
  }
}

/** Return the parts of a node that are expressions or statements, not names of properties or parameters. @param {Node} node @returns {Node[]} */
export function partsOf(node) {
  if (FUNCTIONS.has(node.type)) return [...node.params.flatMap(expressionsIn), node.body];
  if (node.type === 'AssignmentExpression' && node.operator === '=') {
    if (node.left.type === 'Identifier') return [node.right];
    if (node.left.type === 'MemberExpression') return [...partsOf(node.left), node.right];
  }
  const parts = [];
  for (const field in node) {
    const value = node[field];
    if (typeof value !== 'object' || value === null || field === 'label') continue;
    if (Array.isArray(value)) parts.push(...value.filter((one) => typeof one?.type === 'string'));
    else if (typeof value.type === 'string' && !isName(field, node)) parts.push(value);
  }
  return parts;
}

/** Return whether a field has the name of a property or variable, and not an expression. @param {string} field @param {Node} node */
function isName(field, node) {
  return field === 'id' ? node.id.type === 'Identifier' : (field === 'key' || field === 'property') && !node.computed;
}

/** @param {Node} node */
export function isNothing(node) {
  const isUndefined = (node.type === 'Identifier' && node.name === 'undefined') || (node.type === 'UnaryExpression' && node.operator === 'void');
  return isUndefined || (node.type === 'Literal' && node.raw === 'null');
}
