// @ts-check
/**
 * Finds out for which rules the decorators of a TypeScript program were written. By the standard's rules, a decorator is called with `(value,
 * context)`; by TypeScript's own rules (`experimentalDecorators`), with `(target, key, descriptor)`.
 *
 * esbuild compiles standard decorators to plain JavaScript, `__decorateElement(…, flags, name, [decorators], …)`. This module reads that output,
 * which has no types, so it looks at how each decorator uses its parameters.
 */
import { parse } from './parser.mjs';

/** @typedef {{type: string, [field: string]: any}} Node a node of an ESTree
 * @typedef {{legacy: string[], standard: string[], unclear: string[]}} Kinds names of decorators
 * @typedef {'legacy' | 'standard' | 'unclear' | 'either'} Verdict `either`: the decorator does the same under both rules
 */

const CALL = /^__decorateElement\d*$/;
const MOST_CHARS = 4_000_000;
const MOST_STEPS = 12;
/** Kinds of decorated things, in the last three bits of esbuild's flags. */
const CLASS = 0;
const FIELD = 5;
/** `accessor x = 1`, which usually means the rules of the standard. */
const ACCESSOR = 4;
/** Properties that only the context of a decorator has. */
const CONTEXT = ['kind', 'name', 'static', 'private', 'access', 'addInitializer', 'metadata'];
const NAMES = {
  context: /^_*(?:c|ctx|context|\w*Context)$/,
  key: /(?:key|prop|property|propertyName|member|field|attribute|memberName|propName|methodName)$/i,
  target: /^_*(?:target|proto\w*|prototype|object|obj|instance|ctor|constructor|klass|cls|parent)$/i,
};

/** Return the decorators by the rules for which they were written; null if there are no decorators. @param {string} text esbuild's output @returns
 * {Kinds | null} */
export function kindsOf(text) {
  if (!text.includes('__decorateElement')) return null;
  const kinds = /** @type {Kinds} */ ({ legacy: [], standard: [], unclear: [] });
  const program = text.length > MOST_CHARS ? null : parse(text);
  if (program === null) return { ...kinds, unclear: ['decorators'] };
  const known = new Known(program);
  for (const { flags, decorators } of known.decorated) {
    for (const decorator of decorators) {
      const found = known.functionsOf(decorator, MOST_STEPS);
      const verdicts = found === null && (flags & 7) !== ACCESSOR ? ['unclear'] : (found ?? []).map((one) => verdictOf(one, flags & 7));
      const verdict = /** @type {const} */ (['legacy', 'standard', 'unclear']).find((one) => verdicts.includes(one));
      if (verdict !== undefined && !kinds[verdict].includes(nameOf(decorator))) kinds[verdict].push(nameOf(decorator));
    }
  }
  return kinds;
}

/** The names of a program, and the nodes that they stand for. */
class Known {
  /** @type {Map<string, Node>} */
  #values = new Map();
  /** @type {Map<string, Node>} what modules of packages export, by name */
  #exported = new Map();
  /** @type {{flags: number, decorators: Node[]}[]} */
  decorated = [];

  /** @param {Node} program */
  constructor(program) {
    const calls = /** @type {Node[]} */ ([]);
    for (const node of within(program)) {
      if (node.type === 'FunctionDeclaration' && node.id) this.#add(node.id.name, node);
      else if (node.type === 'VariableDeclarator' && node.id.type === 'Identifier' && node.init) this.#add(node.id.name, node.init);
      else if (node.type === 'AssignmentExpression' && node.left.type === 'Identifier') this.#add(node.left.name, node.right);
      else if (isExport(node)) this.#exported.set(node.left.property.name, node.right);
      else if (node.type === 'CallExpression' && CALL.test(node.callee.name)) calls.push(node);
    }
    for (const { arguments: [, flags, , list] } of calls) {
      const listed = this.#values.get(list?.name);
      if (typeof flags?.value === 'number' && listed?.type === 'ArrayExpression') this.decorated.push({ flags: flags.value, decorators: listed.elements });
    }
  }

  /** Record what a name stands for, unless this is known: names at module level come first, and hide those in functions. @param {string} name @param {Node} value */
  #add(name, value) {
    if (!this.#values.has(name)) this.#values.set(name, value);
  }

  /** Return the functions that an expression may stand for, or null if they are not known. @param {Node | null | undefined} node @param {number} steps @returns {Node[] | null} */
  functionsOf(node, steps) {
    if (!node || steps === 0) return null;
    if (isFunction(node)) return [node];
    switch (node.type) {
      case 'Identifier': return this.functionsOf(this.#values.get(node.name), steps - 1);
      case 'SequenceExpression': return this.functionsOf(node.expressions.at(-1), steps - 1);
      case 'LogicalExpression': return this.#all([node.left, node.right], steps);
      case 'ConditionalExpression': return this.#all([node.consequent, node.alternate], steps);
      case 'MemberExpression': return this.functionsOf(this.#member(node), steps - 1);
      case 'CallExpression': {
        const made = this.functionsOf(node.callee, steps - 1);
        return made === null ? null : this.#all(made.flatMap(returnedBy), steps);
      }
      default: return null;
    }
  }

  /** @param {Node[]} nodes @param {number} steps @returns {Node[] | null} the functions that the nodes may stand for; null if none are known */
  #all(nodes, steps) {
    const found = nodes.map((one) => this.functionsOf(one, steps - 1)).filter((one) => one !== null);
    return found.length === 0 ? null : found.flat();
  }

  /** @param {Node} node @returns {Node | undefined} */
  #member({ object, property, computed }) {
    const holder = object.type === 'Identifier' ? this.#values.get(object.name) : object;
    if (holder?.type === 'CallExpression' && !computed) return this.#exported.get(property.name); // the object comes from `require` of a package
    const members = holder?.type === 'ObjectExpression' ? holder.properties : holder?.type?.startsWith('Class') ? holder.body.body : [];
    return computed ? undefined : members.find((/** @type {Node} */ one) => one.key?.name === property.name)?.value;
  }
}

/** @param {Node} node @param {number} kind @returns {Verdict} */
function verdictOf(node, kind) {
  const { params } = node;
  if (params.some((/** @type {Node} */ one) => one.type === 'RestElement') || usesArguments(node)) return 'either';
  const [first, second] = params.map((/** @type {Node} */ one) => (one.type === 'AssignmentPattern' ? one.left : one));
  if (kind === CLASS) return params.length > 1 ? 'standard' : 'either';
  if (params.length > 2) return 'legacy';
  if (params.length === 1) return kind === FIELD && usesIn(node, first).length > 0 ? 'legacy' : 'either';
  return params.length === 0 ? 'either' : secondIs(node, first, second);
}

/** Return which rules the use of the second parameter shows: by the standard's rules it is a context, by TypeScript's own rules a key. @param {Node}
 * node @param {Node} first @param {Node} second @returns {Verdict} */
function secondIs(node, first, second) {
  if (second.type !== 'Identifier') return 'standard'; // a destructured parameter is a context, because a key is a string
  const uses = usesIn(node, second);
  if (uses.some(isOfContext)) return 'standard';
  if (uses.some(isOfKey)) return 'legacy';
  if (NAMES.context.test(second.name)) return 'standard';
  if (NAMES.key.test(second.name) || (first.type === 'Identifier' && NAMES.target.test(first.name))) return 'legacy';
  return uses.length === 0 ? 'either' : 'unclear';
}

/** @param {{node: Node, parent: Node}} use */
function isOfContext({ node, parent }) {
  if (parent.type === 'VariableDeclarator') return parent.init === node && parent.id.type === 'ObjectPattern';
  return parent.type === 'MemberExpression' && parent.object === node && !parent.computed && CONTEXT.includes(parent.property.name);
}

/** @param {{node: Node, parent: Node}} use */
function isOfKey({ node, parent }) {
  switch (parent.type) {
    case 'MemberExpression': return parent.object === node || parent.computed;
    case 'Property': return parent.computed && parent.key === node;
    case 'TemplateLiteral': return true;
    case 'BinaryExpression': return ['+', 'in', '<', '>'].includes(parent.operator) || [parent.left, parent.right].some((one) => typeof one.value === 'string');
    default: return false;
  }
}

/** @param {Node} node a function @returns {Node[]} what it returns */
function returnedBy(node) {
  if (node.body.type !== 'BlockStatement') return [node.body];
  return [...within(node.body, (one) => !isFunction(one))].flatMap((one) => (one.type === 'ReturnStatement' && one.argument ? [one.argument] : []));
}

/** @param {Node} node a function @param {Node} parameter @returns {{node: Node, parent: Node}[]} */
function usesIn(node, parameter) {
  if (parameter.type !== 'Identifier') return [{ node: parameter, parent: node }];
  const found = /** @type {{node: Node, parent: Node}[]} */ ([]);
  for (const parent of within(node.body.type === 'BlockStatement' ? node.body : { type: 'Body', body: node.body })) {
    for (const part of partsOf(parent)) if (part.type === 'Identifier' && part.name === parameter.name && isValue(part, parent)) found.push({ node: part, parent });
  }
  return found;
}

/** Return whether an identifier stands for a value, and is not the name of a property. @param {Node} part @param {Node} parent */
function isValue(part, parent) {
  return parent.computed || !((parent.type === 'MemberExpression' && parent.property === part) || (parent.type === 'Property' && parent.key === part && !parent.shorthand));
}

/** @param {Node} node a function */
function usesArguments(node) {
  return node.type !== 'ArrowFunctionExpression' && [...within(node.body, (one) => !isFunction(one) || one.type === 'ArrowFunctionExpression')].some((one) => one.type === 'Identifier' && one.name === 'arguments');
}

/** @param {Node} node `exports.name = name`, where esbuild may have renamed both */
function isExport({ type, left, right }) {
  return type === 'AssignmentExpression' && left.type === 'MemberExpression' && !left.computed && /^exports\d*$/.test(left.object.name) && (right.type === 'Identifier' || isFunction(right));
}

/** @param {Node} node */
function isFunction(node) {
  return ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'].includes(node.type);
}

/** Go through a tree without recursion, from its top. @param {Node} top @param {(node: Node) => boolean} enters @returns {Generator<Node>} */
function* within(top, enters = () => true) {
  const left = [top];
  for (let node = left.pop(); node !== undefined; node = left.pop()) {
    yield node;
    if (node === top || enters(node)) left.push(...partsOf(node).reverse());
  }
}

/** @param {Node} node @returns {Node[]} */
function partsOf(node) {
  return Object.values(node).flatMap((value) => (Array.isArray(value) ? value : [value])).filter((one) => typeof one?.type === 'string');
}

/** @param {Node} node a decorator @returns {string} its name in the code */
function nameOf(node) {
  switch (node?.type) {
    case 'Identifier': return `@${node.name}`;
    case 'MemberExpression': return `@${node.property.name ?? '…'}`;
    case 'CallExpression': return nameOf(node.callee);
    case 'SequenceExpression': return nameOf(node.expressions.at(-1));
    default: return 'a decorator';
  }
}
