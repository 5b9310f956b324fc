// @ts-check
/** Tells the `main` of a program, which prints or exits, from a `main` that returns a score. */
import { alternativesOf, functionIn, isFunction, partsOf } from './nodes.mjs';

/** @typedef {import('./nodes.mjs').Node} Node */

/** Matches a call of `main`. */
const CALLED = /(?<![\w$.]|\bfunction\s{1,9}\*?\s{0,9})main\s*\(/;
/** Objects whose methods do not return a score. */
const PRINTING = ['console', 'process'];

/**
 * Return whether a function `main` belongs to a program: it returns nothing or an exit code. If the code itself calls `main`, it may return other values, but no
 * object and no score.
 *
 * @param {string} text the function @param {string} code all the code
 */
export function isProgramMain(text, code) {
  const main = functionIn(text);
  if (main === null) return false;
  const own = ownNodes(main.body);
  const returned = main.body.type === 'BlockStatement' ? own.flatMap((one) => (one.type === 'ReturnStatement' && one.argument ? [one.argument] : [])) : [main.body];
  const values = returned.flatMap(alternatives).filter((one) => !isExitCode(one));
  return values.length === 0 || (CALLED.test(code) && !values.some((one) => isScore(one) || (one.type === 'Identifier' && own.flatMap((each) => valuesOf(each, one.name)).some(isScore))));
}

/** Return the expressions whose value an expression may have. @param {Node} node @returns {Node[]} */
function alternatives(node) {
  const parts = alternativesOf(node);
  return parts.length === 0 ? [node] : parts.flatMap(alternatives);
}

/** Return the values that a node gives a variable. @param {Node} node @param {string} name @returns {Node[]} */
function valuesOf(node, name) {
  if (node.type === 'VariableDeclarator' && node.id.name === name && node.init) return alternatives(node.init);
  return node.type === 'AssignmentExpression' && node.left.name === name ? alternatives(node.right) : [];
}

/** Return a node and all nodes in it, except those in inner functions. @param {Node} top @returns {Node[]} */
function ownNodes(top) {
  const found = [];
  const left = [top];
  for (let node = left.pop(); node !== undefined; node = left.pop()) {
    found.push(node);
    left.push(...partsOf(node).filter((one) => !isFunction(one)));
  }
  return found;
}

/** @param {Node} node @returns {boolean} */
function isExitCode(node) {
  if (node.type === 'CallExpression') return PRINTING.includes(node.callee.object?.name);
  if (node.type === 'UnaryExpression') return node.operator === 'void' || (node.operator === '-' && isExitCode(node.argument));
  return node.type === 'Literal' ? node.raw === 'null' || Number.isInteger(node.value) : node.type === 'Identifier' && node.name === 'undefined';
}

/** @param {Node} node */
function isScore(node) {
  return node.type === 'ObjectExpression' || (node.type === 'Literal' && typeof node.value !== 'string' && !isExitCode(node));
}
