// @ts-check
/**
 * Follows the values of functions' arguments, and of parts of the arguments, through the code.
 *
 * @typedef {import('./nodes.mjs').Node} Node
 * @typedef {{of: string | null, key: string, read: boolean, tested: boolean, asked: boolean, keys: Set<string>, compared: Set<string>, owner: Node | null}} Uses of a parameter of the function `owner`
 *   (then `of` is null), or of a value that the code reads by a constant name; `tested`: the code tests the value, or gives it a default; `asked`:
 *   the code tests the value, and gives it no default
 * @typedef {{of: string | null, key: string, tested: boolean}} Read
 * @typedef {{node: Node, uses: Uses[], rest: Uses}} Function_
 * @typedef {Map<string, Uses[]>} Known the values that each name may have
 */
import { EITHER, FUNCTIONS, alternativesOf, functionIn, isNothing, namesIn, partsOf, readOf } from './nodes.mjs';

export const MOST_NAMES = 20;
const MOST_READS = 500;
export const MOST_PARTS = 20; // maximum number of parts of a dotted name: `a.b.c` has three
export const CHARS = 80;
const ASKING = ['hasOwn', 'hasOwnProperty'];
const TESTS = ['IfStatement', 'ConditionalExpression', 'WhileStatement', 'DoWhileStatement', 'ForStatement'];

/** @param {string | null} of @param {string} key @returns {Uses} */
export function unused(of, key) {
  return { of, key, read: false, tested: false, asked: false, keys: new Set(), compared: new Set(), owner: null };
}

/** The functions of a program, and what they read by constant names. */
export class Outline {
  /** @type {Function_[]} */
  #functions = [];
  /** @type {Map<string, Uses>} */
  #used = new Map();
  /** Parameters, except those of inner functions that have the name of an outer parameter. @type {Uses[]} */
  #parameters = [];
  /** The statements directly in functions' bodies, not those in inner blocks. @type {Set<Node>} */
  #top = new Set();
  /** Names that `if` statements test. @type {Set<string>} */
  #asked = new Set();
  /** Members that are called. @type {Set<Node>} */
  #called = new Set();

  /** @returns {Read[]} */
  reads() {
    const every = [...this.#used.values()].map(({ of, key, asked }) => ({ of, key, tested: asked || (of !== '' && this.#asked.has(String(of))) }));
    const parameters = this.#parameters.filter((one) => one.asked).map(({ key }) => ({ of: null, key, tested: true }));
    return [...every, ...parameters].slice(0, MOST_READS).map(({ of, key, tested }) => ({ of: of?.slice(0, CHARS) ?? null, key: key.slice(0, CHARS), tested }));
  }

  /** Return what the code reads of the value with this name. @param {string} name @returns {string[]} */
  keysOf(name) {
    return [...this.#used.values()].filter((one) => one.of === name).map((one) => one.key);
  }

  /** Return the properties of a value that the code tests, or gives a default. @param {string} name @returns {string[]} */
  testedOf(name) {
    return [...this.#used.values()].filter((one) => one.of === name && (one.tested || one.asked)).map((one) => one.key);
  }

  /** Return whether the code tests a property. @param {string} of name of the value that has it @param {string} key */
  asks(of, key) {
    return this.#asked.has(key) || (of !== '' && this.#asked.has(of)) || this.#used.get(`${of}\n${key}`)?.asked === true;
  }

  /** Return the function with this text among those that were read, or null. @param {string} source @param {string} text @returns {Function_ | null} */
  find(source, text) {
    // the text of a method is longer than its node, because it begins with the method's name
    const found = this.#functions.filter(({ node }) => text.length >= node.end - node.start && source.endsWith(text, node.end));
    // an arrow function at the end of the wanted function matches as well, so take the longest match
    return found.sort((one, other) => one.node.start - one.node.end - (other.node.start - other.node.end))[0] ?? null;
  }

  /** @param {string} text @returns {Function_ | null} */
  readFunction(text) {
    const node = functionIn(text);
    if (node === null) return null;
    const at = this.#functions.length;
    this.read(node, new Map());
    return this.#functions[at];
  }

  /** Return the values that names may have inside a function. @param {Node} node @param {Known} outer @returns {Known} */
  #enter(node, outer) {
    const known = inside(node, outer);
    const around = new Set([...outer].filter(([, ofs]) => ofs.some((one) => one.of === null)).map(([name]) => name));
    const uses = node.params.filter((/** @type {Node} */ one) => one.type !== 'RestElement').slice(0, MOST_NAMES).map((/** @type {Node} */ one) => this.declare(one, known, around, node));
    const more = node.params.find((/** @type {Node} */ one) => one.type === 'RestElement')?.argument;
    const rest = more ? this.declare(more, known, around) : unused(null, '');
    if (node.type !== 'ArrowFunctionExpression') known.set('arguments', [rest]);
    this.#functions.push({ node, uses, rest });
    this.#begin(node.body);
    return known;
  }

  /** @param {Node} body the body of a function */
  #begin(body) {
    for (const one of body.type === 'BlockStatement' ? body.body : []) this.#top.add(one);
  }

  /** Record a parameter; a parameter that is destructured counts as read. @param {Node} parameter @param {Known} known @param {Set<string>} [around] names of parameters that it may hide @param {Node | null} [owner] @returns {Uses} */
  declare(parameter, known, around, owner = null) {
    const pattern = parameter.type === 'AssignmentPattern' ? parameter.left : parameter;
    const uses = unused(null, pattern.type === 'Identifier' ? pattern.name : '');
    uses.owner = owner;
    if (!around?.has(uses.key)) this.#parameters.push(uses);
    this.#bind(pattern, [uses], '', known);
    return uses;
  }

  /** Record the values that the names in a pattern get. @param {Node} pattern @param {Uses[]} values @param {string} of @param {Known} known */
  #bind(pattern, values, of, known) {
    if (pattern.type === 'AssignmentPattern') this.#bind(pattern.left, values, of, known);
    if (pattern.type === 'Identifier') known.set(pattern.name, [...(known.get(pattern.name) ?? []), ...values].slice(-MOST_NAMES)); // the earlier values stay, because a name in a block may hide another one only there
    if (/Pattern$/.test(pattern.type)) for (const one of values) one.read = true;
    for (const one of pattern.type === 'ObjectPattern' ? pattern.properties : []) {
      if (one.type !== 'Property' || one.computed) continue;
      const key = String(one.key.name ?? one.key.value);
      for (const each of values) each.keys.add(key);
      const uses = this.#use(of, key);
      if (one.value.type === 'AssignmentPattern') uses.tested = true;
      this.#bind(one.value, [uses], key, known);
    }
  }

  /** @param {Node} start @param {Known} given */
  read(start, given) {
    this.#begin(start);
    /** @type {{node: Node, known: Known, asks: boolean, done: boolean}[]} */
    const left = [{ node: start, known: given, asks: false, done: false }];
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { node, known: outer, asks, done } = next;
      if (done) {
        this.#assign(node, outer);
        continue;
      }
      const known = FUNCTIONS.has(node.type) ? this.#enter(node, outer) : outer;
      this.#note(node, known, asks);
      if (node.type === 'VariableDeclarator' || node.type === 'ExpressionStatement') left.push({ node, known, asks, done: true });
      for (const part of partsOf(node).reverse()) left.push({ node: part, known, asks: asks || (node.type === 'IfStatement' && part === node.test), done: false });
    }
  }

  /** Record the value that a name gets here. After an assignment in a block, the name may still have its earlier value, too. @param {Node} node @param {Known} known */
  #assign(node, known) {
    if (node.type === 'VariableDeclarator') {
      if (node.init) this.#bind(node.id, this.#valuesOf(node.init, known), this.#nameOf(node.init, known), known);
      return;
    }
    const { type, operator, left, right } = node.expression;
    if (type !== 'AssignmentExpression' || operator !== '=' || left.type !== 'Identifier') return;
    const values = this.#valuesOf(right, known);
    known.set(left.name, this.#top.has(node) ? values : [...(known.get(left.name) ?? []), ...values].slice(-MOST_NAMES));
  }

  /** @param {Node} node @param {Known} known @param {boolean} asks */
  #note(node, known, asks) {
    if (TESTS.includes(node.type)) return this.#ask(node.test, known, asks || node.type === 'IfStatement');
    switch (node.type) {
      case 'Identifier':
        for (const uses of known.get(node.name) ?? []) uses.read = true;
        break;
      case 'UnaryExpression': return void (node.operator === '!' && this.#ask(node.argument, known, asks));
      case 'LogicalExpression':
        if (node.operator === '&&') this.#ask(node.left, known, asks);
        this.#tested(node.left, known);
        break;
      case 'BinaryExpression': return this.#compare(node, known, asks);
      case 'MemberExpression': return this.#member(node, known);
      case 'CallExpression': return this.#call(node, known);
      default:
    }
  }

  /** @param {Node} node @param {Known} known */
  #call(node, known) {
    this.#called.add(node.callee);
    const found = readOf(node);
    if (found) {
      const uses = this.#key(found, known);
      if (ASKING.includes(node.callee.property.name)) uses.asked = true;
    }
    // a string that `eval` runs may read any name
    if (node.callee.name === 'eval') for (const every of known.values()) for (const uses of every) uses.read = true;
  }

  /** @param {Node} node @param {Known} known */
  #member(node, known) {
    const { object, optional } = node;
    if (optional) this.#tested(object, known);
    const found = readOf(node);
    if (!found) return;
    if (!this.#called.has(node)) this.#key(found, known);
    else for (const uses of this.#valuesOf(object, known)) uses.keys.add(found.key);
  }

  /** @param {{of: Node, key: string}} found @param {Known} known @returns {Uses} */
  #key({ of, key }, known) {
    for (const uses of this.#valuesOf(of, known)) uses.keys.add(key);
    return this.#use(this.#nameOf(of, known), key);
  }

  /** @param {Node} node @param {Known} known @param {boolean} asks */
  #compare({ operator, left, right }, known, asks) {
    if (operator === 'in' && typeof left.value === 'string') this.#use(this.#nameOf(right, known), left.value).asked = true;
    for (const [one, other] of [[left, right], [right, left]]) {
      if (EITHER.includes(operator) && isNothing(other)) this.#ask(one, known, asks);
      else if (EITHER.includes(operator) && other.value === 'undefined' && one.operator === 'typeof') this.#ask(one.argument, known, asks);
      else if (EITHER.includes(operator) || operator === 'in') {
        const others = (known.get(other.name) ?? []).filter((each) => each.of === null);
        for (const uses of known.get(one.name) ?? []) for (const each of others) if (each !== uses && each.owner === uses.owner) uses.compared.add(each.key);
      }
    }
  }

  /** @param {Node} node @param {Known} known @returns {void} */
  #tested(node, known) {
    if (node.type === 'LogicalExpression') [node.left, node.right].forEach((one) => this.#tested(one, known));
    else if (readOf(node)) for (const uses of this.#valuesOf(node, known)) uses.tested = true;
    else for (const uses of known.get(node.name) ?? []) uses.tested = true;
  }

  /** Record the values that an expression tests: the code checks whether the expression is true. @param {Node | null} node @param {Known} known
   * @param {boolean} byStatement @returns {void} */
  #ask(node, known, byStatement) {
    if (!node) return;
    if (node.type === 'UnaryExpression' && node.operator === '!') return this.#ask(node.argument, known, byStatement);
    if (node.type === 'LogicalExpression') return [node.left, node.right].forEach((one) => this.#ask(one, known, byStatement));
    this.#tested(node, known);
    const asked = this.#valuesOf(node, known);
    if (byStatement) for (const name of [node.name ?? '', ...asked.map((one) => one.key)]) this.#asked.add(name);
    let whole = /** @type {Node | undefined} */ (node);
    for (let parts = 0; whole && parts < MOST_PARTS; parts++) {
      for (const uses of this.#valuesOf(whole, known)) uses.asked = true;
      whole = readOf(whole)?.of;
    }
  }

  /** Return the values that an expression may have. @param {Node | null | undefined} node @param {Known} known @param {number} [parts] @returns {Uses[]} */
  #valuesOf(node, known, parts = MOST_PARTS) {
    if (!node || parts === 0) return [];
    if (node.type === 'Identifier') return known.get(node.name) ?? [];
    const found = readOf(node);
    if (found) return [this.#use(this.#nameOf(found.of, known, parts - 1), found.key)];
    return alternativesOf(node).flatMap((one) => this.#valuesOf(one, known, parts - 1));
  }

  /** Return the name of the value from which something is read; for an item of a list, the name of the list. @param {Node} node @param {Known} known @param {number} [parts] @returns {string} */
  #nameOf(node, known, parts = MOST_PARTS) {
    let whole = node;
    while (whole.type === 'MemberExpression' && !readOf(whole)) whole = whole.object;
    if (whole.type === 'ThisExpression') return 'this';
    const [first] = this.#valuesOf(whole, known, parts);
    return first ? first.key : whole.name ?? '';
  }

  /** @param {string} of @param {string} key @returns {Uses} */
  #use(of, key) {
    const made = unused(of, key);
    if (of === 'this') return made; // a method's own object does not come from a row
    const name = `${of}\n${key}`;
    const found = this.#used.get(name) ?? made;
    this.#used.set(name, found);
    return found;
  }
}

/** Return what a function can see of the names around it. @param {Node} node @param {Known} known */
function inside(node, known) {
  const hidden = new Set(node.params.flatMap(namesIn));
  if (node.type !== 'ArrowFunctionExpression') hidden.add('arguments');
  return new Map([...known].filter(([name]) => !hidden.has(name)));
}
