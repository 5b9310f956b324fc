// @ts-check
/**
 * Finds the values that a function takes out of its arguments and compares in every call.
 *
 * @typedef {import('./nodes.mjs').Node} Node
 * @typedef {{at: number, of: string, keys: string[], text: string}} Part a value that a function takes out of its argument number `at`; `of`: the name of the argument, or ''; `text`: as the code has it
 * @typedef {{sides: [Part, Part], others: [Part[], Part[]], isOptional: boolean}} Pair two values that every call compares; `others`: for each side, the further values that the code compares
 *   with it; `isOptional`: whether the code decides by something else if the two values differ
 * @typedef {{node: Node, hasRest: boolean}} Certain `hasRest`: whether the code decides by something else if the node is false
 */
import { EITHER, FUNCTIONS, MOST_CHARS, SAME, expressionsIn, functionIn, namesIn, nodesIn, orNothing, partsOf, readOf } from './nodes.mjs';
import { MOST_PARTS, Outline } from './outline.mjs';

const CONVERTING = ['String', 'Number', 'stringify']; // functions that return the value of their argument in another form
const TELLING = new Set(['debug', 'error', 'info', 'log', 'warn']); // functions that do not change their arguments
/** Matches the names of functions and methods that compare two values. */
const COMPARING = /equal|same|match|compare|^(?:is|includes|startsWith|endsWith|indexOf)$/i;
const MOST_PAIRS = 20;
// statements after which the next statement may not run
const LEAVING = ['ReturnStatement', 'ThrowStatement', 'BreakStatement', 'ContinueStatement'];

/**
 * Return the pairs of values that a function takes out of its arguments and compares in every call, except values that it tests or changes.
 *
 * @param {string} text @returns {Pair[]}
 */
export function comparedIn(text) {
  return orNothing(() => {
    const node = text.length > MOST_CHARS ? null : functionIn(text);
    return node === null ? [] : new Comparisons(node).pairs();
  }) ?? [];
}

/** The comparisons in a function. A name stands for a part of an argument only if it is declared once and never assigned. */
class Comparisons {
  /** @type {Map<string, Part>} */
  #parts = new Map();
  #outline = new Outline();
  /** @type {Node[]} */
  #nodes;
  /** The expressions that every call evaluates. @type {Certain[]} */
  #certain;
  /** The properties that the function may change; `*` stands for any. @type {Set<string>} */
  #written;
  /** How often each name gets a value. @type {Map<string, number>} */
  #given = new Map();

  /** @param {Node} node of the function */
  constructor(node) {
    this.#outline.read(node, new Map());
    this.#nodes = [...node.params.flatMap(expressionsIn), node.body].flatMap(nodesIn);
    this.#certain = certainIn(node.body);
    for (const name of [...node.params.flatMap(namesIn), ...this.#nodes.flatMap(givenBy)]) this.#given.set(name, (this.#given.get(name) ?? 0) + 1);
    node.params.forEach((/** @type {Node} */ one, /** @type {number} */ at) => this.#bind(one.left ?? one, { at, of: '', keys: [], text: '' }));
    for (const one of this.#nodes) {
      const part = one.type === 'VariableDeclarator' && one.init ? this.#partOf(one.init) : null;
      if (part !== null) this.#bind(one.id, part);
    }
    this.#written = new Set(this.#nodes.flatMap((one) => this.#writtenBy(one)));
  }

  /** @returns {Pair[]} */
  pairs() {
    /** @type {Pair[]} */
    const found = [];
    for (const { node, hasRest } of this.#certain) {
      const sides = this.#partsIn(node);
      if (sides !== null && !sides.some((one) => this.#isSettled(one))) found.push({ sides, others: [[], []], isOptional: hasRest && !isNegative(node) });
      if (found.length === MOST_PAIRS) break;
    }
    for (const node of found.length === 0 ? [] : this.#nodes) {
      const [one, other] = (isNegative(node) ? null : this.#partsIn(node)) ?? [];
      if (!one || !other) continue;
      for (const { sides, others } of found) {
        sides.forEach((side, at) => {
          if (side.text === one.text) others[at].push(other);
          if (side.text === other.text) others[at].push(one);
        });
      }
    }
    return found;
  }

  /** Return the two parts that an expression compares; null if it does not compare two parts. @param {Node} node @returns {[Part, Part] | null} */
  #partsIn(node) {
    const [one, other] = sidesOf(node).map((side) => this.#partOf(side));
    return one && other && one.text !== other.text ? [one, other] : null;
  }

  /** Return the properties that a node may change, `*` for any. @param {Node} node @returns {string[]} */
  #writtenBy(node) {
    const target = node.type === 'AssignmentExpression' ? node.left : node.type === 'UpdateExpression' || node.operator === 'delete' ? node.argument : null;
    if (target?.type === 'MemberExpression') return [readOf(target)?.key ?? '*'];
    if (node.type === 'CallExpression' && node.callee.property?.name === 'assign') return ['*'];
    // a function that is called only for its effects, such as `prepare(row)` or `await this.fill(row)`
    let called = node.type === 'ExpressionStatement' ? node.expression : null;
    while (called?.type === 'AwaitExpression' || called?.type === 'ChainExpression') called = called.argument ?? called.expression;
    if (called?.type !== 'CallExpression' || TELLING.has(called.callee.property?.name ?? called.callee.name) || sidesOf(called).length > 0) return [];
    const given = [called.callee, ...called.arguments].map((/** @type {Node} */ one) => (one.type === 'SpreadElement' ? one.argument : one));
    return given.some((/** @type {Node} */ one) => this.#partOf(one) !== null) ? ['*'] : [];
  }

  /** Return whether the function tests this part of an argument, or may change it. @param {Part} part */
  #isSettled({ of, keys }) {
    return this.#written.has('*') || keys.some((key, at) => this.#written.has(key) || this.#outline.asks(at > 0 ? keys[at - 1] : of, key));
  }

  /** @param {Node} pattern @param {Part} part */
  #bind(pattern, part) {
    if (pattern.type === 'Identifier') {
      const isArgument = part.text === '';
      if (this.#given.get(pattern.name) === 1) this.#parts.set(pattern.name, isArgument ? { ...part, of: pattern.name, text: pattern.name } : part);
    }
    for (const one of pattern.type === 'ObjectPattern' ? pattern.properties : []) {
      if (one.type === 'Property' && !one.computed) this.#bind(one.value, within(part, String(one.key.name ?? one.key.value)));
    }
  }

  /** Return the part of an argument that is the value of an expression, perhaps in another form; null for any other expression. @param {Node | undefined} node @returns {Part | null} */
  #partOf(node) {
    switch (node?.type) {
      case 'Identifier': return this.#parts.get(node.name) ?? null;
      case 'ChainExpression': return this.#partOf(node.expression);
      case 'AwaitExpression': return this.#partOf(node.argument);
      case 'TemplateLiteral': return node.expressions.length === 1 && node.quasis.every((/** @type {Node} */ one) => one.value.raw === '') ? this.#partOf(node.expressions[0]) : null;
      case 'MemberExpression': {
        const found = readOf(node);
        const whole = found && this.#partOf(found.of);
        return whole && whole.keys.length < MOST_PARTS ? within(whole, found.key) : null;
      }
      case 'CallExpression': {
        const { name, property, object } = node.callee;
        if (SAME.includes(property?.name)) return this.#partOf(object);
        return CONVERTING.includes(property?.name ?? name) ? this.#partOf(node.arguments[0]) : null;
      }
      default: return null;
    }
  }
}

/** @param {Part} whole @param {string} key @returns {Part} */
function within(whole, key) {
  return { ...whole, keys: [...whole.keys, key], text: whole.text === '' ? key : `${whole.text}.${key}` };
}

/** Return the two expressions that an expression compares; an empty list if it does not compare. @param {Node} node @returns {Node[]} */
function sidesOf(node) {
  if (node.type === 'BinaryExpression') return EITHER.includes(node.operator) ? [node.left, node.right] : [];
  if (node.type !== 'CallExpression' || !COMPARING.test(node.callee.property?.name ?? node.callee.name ?? '')) return [];
  const sides = node.arguments.length > 1 ? node.arguments.slice(0, 2) : [node.callee.object, node.arguments[0]];
  return sides.every((/** @type {Node | undefined} */ one) => one !== undefined) ? sides : [];
}

/** Return the names to which a node gives values. @param {Node} node @returns {string[]} */
function givenBy(node) {
  if (node.type === 'VariableDeclarator') return namesIn(node.id);
  if (node.type === 'AssignmentExpression') return node.left.type === 'MemberExpression' ? [] : [...namesIn(node.left), ...namesIn(node.left)];
  if (node.type === 'CatchClause') return node.param ? namesIn(node.param) : [];
  if (FUNCTIONS.has(node.type)) return [...node.params.flatMap(namesIn), ...(node.id ? [node.id.name] : [])];
  return [];
}

/** @param {Node} node */
function isNegative(node) {
  return node.type === 'BinaryExpression' && node.operator.startsWith('!');
}

/** Return the expressions that every call of a function with this body evaluates, up to the first statement that may end the call. @param {Node} body @returns {Certain[]} */
function certainIn(body) {
  /** @type {Certain[]} */
  const found = [];
  /** @type {Certain[]} */
  const left = [];
  const add = (/** @type {Node} */ node, hasRest = false) => left.push({ node, hasRest });
  add(body);
  for (let one = left.pop(); one; one = left.pop()) {
    found.push(one);
    const { node, hasRest } = one;
    switch (node.type) {
      case 'IfStatement': {
        const rest = [...(node.alternate ? [node.alternate] : []), ...(mayLeave(node.consequent) ? left.map((each) => each.node) : [])];
        if (mayLeave(node.consequent) || (node.alternate && mayLeave(node.alternate))) left.length = 0;
        add(node.test, !rest.every(isFixed));
        break;
      }
      case 'ConditionalExpression': add(node.test, !isFixed(node.alternate)); break;
      case 'LogicalExpression': add(node.left, hasRest || node.operator === '||'); break;
      case 'TryStatement': left.length = 0; add(node.block); break;
      case 'ReturnStatement': case 'ThrowStatement': left.length = 0; if (node.argument) add(node.argument); break;
      case 'ForStatement': case 'ForInStatement': case 'ForOfStatement': case 'WhileStatement': case 'DoWhileStatement': case 'SwitchStatement': case 'LabeledStatement': left.length = 0; break;
      default: if (!FUNCTIONS.has(node.type)) for (const part of partsOf(node).reverse()) add(part);
    }
  }
  return found;
}

/** @param {Node} node */
function mayLeave(node) {
  return nodesIn(node).some(({ type }) => LEAVING.includes(type));
}

/** Return whether nothing in a node depends on a value, except texts such as `expected ${wanted}`. @param {Node} node @returns {boolean} */
function isFixed(node) {
  if (node.type === 'Identifier') return node.name === 'undefined' || node.name === 'NaN';
  return node.type === 'TemplateLiteral' || FUNCTIONS.has(node.type) || partsOf(node).every(isFixed);
}
