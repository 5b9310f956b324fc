// @ts-check
/**
 * Reads facts of code from its syntax tree: of each function that is called for a row, what it does with its arguments.
 *
 * V8 gives a function's text without types, so one parser reads JavaScript and TypeScript: acorn, which comes with Node.
 * The host makes its warnings of these facts; what the names of parameters mean is for the host to say.
 */
import { parametersOf } from './parameters.mjs';
import { parse } from './parser.mjs';

/**
 * @typedef {{type: string, [field: string]: any}} Node of an ESTree
 * @typedef {{read: boolean, tested: boolean, keys: Set<string>, compared: Set<string>}} Uses
 * @typedef {{name: string, line: number | null, rest: boolean, parameters: {name: string, read: boolean, tested: boolean, keys: string[], compared: string[]}[]}} Facts
 * @typedef {Map<string, Uses>} Known parameters whose names still stand for them
 */

const MOST_CHARS = 200_000; // longest code of all functions together
const MOST_NAMES = 20;
const CHARS = 80;
const EITHER = ['==', '===', '!=', '!=='];
const TESTS = ['IfStatement', 'ConditionalExpression', 'WhileStatement', 'DoWhileStatement', 'ForStatement'];

/**
 * Return the facts of functions; those that cannot be read are left out.
 *
 * @param {{name: string, text: string}[]} functions
 * @param {(text: string) => number | null} lineOf of a function's text, in the user's code
 * @returns {Facts[]}
 */
export function factsOf(functions, lineOf) {
  let left = MOST_CHARS;
  return functions.flatMap(({ name, text }) => {
    left -= text.length;
    try {
      const node = left < 0 ? null : functionIn(text);
      return node === null ? [] : [{ name: name.slice(0, CHARS), line: lineOf(text), ...readFunction(node, text) }];
    } catch (error) {
      if (error instanceof RangeError) return []; // the code nests too deeply
      throw error;
    }
  });
}

/** Return the keys that a function takes out of its one object and never reads. @param {string} text @returns {string[]} */
export function unreadKeys(text) {
  try {
    const node = text.length > MOST_CHARS ? null : functionIn(text);
    const pattern = node?.params.length === 1 ? node.params[0].left ?? node.params[0] : null;
    return node !== null && pattern?.type === 'ObjectPattern' ? unreadOf(node, pattern) : [];
  } catch (error) {
    if (error instanceof RangeError) return []; // the code nests too deeply
    throw error;
  }
}

/** @param {Node} node @param {Node} pattern of its parameter @returns {string[]} */
function unreadOf(node, pattern) {
  /** @type {Known} */
  const known = new Map();
  const plain = pattern.properties.filter((/** @type {Node} */ one) => one.type === 'Property' && !one.computed && one.value.type === 'Identifier');
  const bound = plain.map((/** @type {Node} */ one) => ({ key: String(one.key.name ?? one.key.value), uses: declare(one.value, known) }));
  const whole = none();
  if (node.type !== 'ArrowFunctionExpression') known.set('arguments', whole);
  for (const one of pattern.properties) if (!plain.includes(one)) read(one, known); // a default may read another key
  read(node.body, known);
  return whole.read ? [] : bound.filter((/** @type {{uses: Uses}} */ one) => !one.uses.read).map((/** @type {{key: string}} */ one) => one.key);
}

/** Return the syntax tree of a function, an arrow function or a method. @param {string} text @returns {Node | null} */
function functionIn(text) {
  for (const whole of [`(${text}\n)`, `({${text}\n})`, `(class extends Object {${text}\n})`]) {
    const found = parse(whole)?.body[0]?.expression;
    const node = found?.type === 'ObjectExpression' ? found.properties[0]?.value : found?.type === 'ClassExpression' ? found.body.body[0]?.value : found;
    if (/Function/.test(node?.type ?? '')) return node;
  }
  return null;
}

/** @param {Node} node @param {string} text */
function readFunction(node, text) {
  const names = parametersOf({ text, length: 0 }).parameters.filter((one) => !one.rest).map((one) => one.name);
  /** @type {Known} */
  const known = new Map();
  const uses = node.params.filter((/** @type {Node} */ one) => one.type !== 'RestElement').slice(0, MOST_NAMES).map((/** @type {Node} */ one) => declare(one, known));
  const more = node.params.find((/** @type {Node} */ one) => one.type === 'RestElement')?.argument;
  const rest = more ? declare(more, known) : none();
  if (node.type !== 'ArrowFunctionExpression') known.set('arguments', rest);
  if (node.body.type === 'BlockStatement') readBody(node.body.body, known);
  else read(node.body, known);
  return {
    rest: rest.read,
    parameters: uses.map((/** @type {Uses} */ one, /** @type {number} */ at) => ({
      name: (names[at] ?? '').slice(0, CHARS), read: one.read, tested: one.tested, keys: listed(one.keys), compared: listed(one.compared),
    })),
  };
}

/** @param {Set<string>} names */
function listed(names) {
  return [...names].slice(0, MOST_NAMES).map((one) => one.slice(0, CHARS));
}

/** @returns {Uses} */
function none() {
  return { read: false, tested: false, keys: new Set(), compared: new Set() };
}

/** Note a parameter; one that is taken apart is read at once. @param {Node} parameter @param {Known} known @returns {Uses} */
function declare(parameter, known) {
  const pattern = parameter.type === 'AssignmentPattern' ? parameter.left : parameter;
  const uses = none();
  if (pattern.type === 'Identifier') known.set(pattern.name, uses);
  else takeApart(pattern, uses);
  return uses;
}

/** @param {Node} pattern @param {Uses} uses */
function takeApart(pattern, uses) {
  uses.read = true;
  for (const one of pattern.properties ?? []) if (one.type === 'Property' && !one.computed) uses.keys.add(String(one.key.name ?? one.key.value));
}

/** Read statements in order: a parameter that is given another value is none from there on. @param {Node[]} statements @param {Known} known */
function readBody(statements, known) {
  for (const statement of statements) {
    read(statement, known);
    const { expression } = statement;
    if (expression?.type === 'AssignmentExpression' && expression.operator === '=') known.delete(expression.left.name);
  }
}

/** @param {Node} start @param {Known} given */
function read(start, given) {
  /** @type {[Node, Known][]} */
  const left = [[start, given]];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const [node, outer] = next;
    const known = /Function/.test(node.type) ? inside(node, outer) : outer;
    note(node, known);
    for (const part of partsOf(node).reverse()) left.push([part, known]);
  }
}

/** Return the parameters that an inner function still sees. @param {Node} node @param {Known} known */
function inside(node, known) {
  const hidden = new Set(node.params.flatMap(namesIn));
  if (node.type !== 'ArrowFunctionExpression') hidden.add('arguments');
  return new Map([...known].filter(([name]) => !hidden.has(name)));
}

/** @param {Node} pattern @returns {string[]} */
function namesIn(pattern) {
  if (pattern.type === 'Identifier') return [pattern.name];
  return partsOf(pattern).flatMap(namesIn);
}

/** Return the parts of a node that are expressions or statements, not names of properties. @param {Node} node @returns {Node[]} */
function partsOf(node) {
  if (node.type === 'AssignmentExpression' && node.operator === '=' && node.left.type === 'Identifier') return [node.right];
  return Object.entries(node).flatMap(([field, value]) => {
    if ((field === 'key' || field === 'property') && !node.computed) return [];
    if (field === 'id' || field === 'label') return field === 'id' && value?.type !== 'Identifier' && value !== null ? [value] : [];
    return (Array.isArray(value) ? value : [value]).filter((one) => typeof one?.type === 'string');
  });
}

/** @param {Node} node @param {Known} known */
function note(node, known) {
  if (TESTS.includes(node.type)) return truth(node.test, known);
  switch (node.type) {
    case 'Identifier': {
      const uses = known.get(node.name);
      if (uses) uses.read = true;
      break;
    }
    case 'UnaryExpression': return void (node.operator === '!' && truth(node.argument, known));
    case 'LogicalExpression': return truth(node.left, known);
    case 'BinaryExpression': return compare(node, known);
    case 'MemberExpression': return member(node, known);
    case 'CallExpression': // the text that `eval` runs may read any name
      if (node.callee.name === 'eval') for (const uses of known.values()) uses.read = true;
      break;
    case 'VariableDeclarator':
      if (node.id.type === 'ObjectPattern' && usesOf(node.init, known)) takeApart(node.id, /** @type {Uses} */ (usesOf(node.init, known)));
      break;
    default:
  }
}

/** Note the parameters that an expression asks whether they are true. @param {Node | null} node @param {Known} known @returns {void} */
function truth(node, known) {
  const uses = usesOf(node, known);
  if (uses) uses.tested = true;
  else if (node?.type === 'UnaryExpression' && node.operator === '!') truth(node.argument, known);
  else if (node?.type === 'LogicalExpression') [node.left, node.right].forEach((one) => truth(one, known));
}

/** @param {Node} node @param {Known} known */
function compare({ operator, left, right }, known) {
  for (const [one, other] of [[left, right], [right, left]]) {
    const uses = usesOf(one, known);
    if (!uses) continue;
    if (EITHER.includes(operator) && isNothing(other)) uses.tested = true;
    else if ((EITHER.includes(operator) || operator === 'in') && usesOf(other, known)) uses.compared.add(other.name);
  }
}

/** @param {Node} node @param {Known} known */
function member({ object, property, computed, optional }, known) {
  const uses = usesOf(object, known);
  if (!uses) return;
  if (optional) uses.tested = true;
  if (!computed) uses.keys.add(property.name);
  else if (typeof property.value === 'string') uses.keys.add(property.value);
}

/** @param {Node} node */
function isNothing(node) {
  return (node.type === 'Literal' && node.raw === 'null') || (node.type === 'Identifier' && node.name === 'undefined');
}

/** @param {Node | null | undefined} node @param {Known} known */
function usesOf(node, known) {
  return node?.type === 'Identifier' ? known.get(node.name) : undefined;
}
