// @ts-check
/**
 * Reads facts about code from its syntax tree: what functions do with their arguments, and with parts of the arguments.
 *
 * V8 gives a function's text without types, so one parser reads JavaScript and TypeScript: acorn, which comes with
 * Node. The host derives its warnings from these facts; only the host knows what names mean.
 */
import { parametersOf } from './parameters.mjs';
import { parse } from './parser.mjs';

/**
 * @typedef {{type: string, [field: string]: any}} Node a node of an ESTree
 * @typedef {{of: string | null, key: string, read: boolean, tested: boolean, asked: boolean, keys: Set<string>, compared: Set<string>, owner: Node | null}} Uses of a parameter of the function `owner`
 *   (then `of` is null), or of a value that the code reads by a constant name; `tested`: the code tests the value, or gives it a default; `asked`:
 *   the code tests the value, and gives it no default
 * @typedef {{name: string, line: number | null, rest: boolean, parameters: {name: string, read: boolean, tested: boolean, keys: string[], compared: string[]}[]}} Facts
 * @typedef {{of: string | null, key: string, tested: boolean}} Read
 * @typedef {{node: Node, uses: Uses[], rest: Uses}} Function_
 * @typedef {Map<string, Uses[]>} Known the values that each name may have
 * @typedef {{at: number, of: string, keys: string[], text: string}} Part a value that a function takes out of its argument number `at`; `of`: the name of the argument, or ''; `text`: as the code has it
 * @typedef {{sides: [Part, Part], others: [Part[], Part[]], isOptional: boolean}} Pair two values that every call compares; `others`: for each side, the further values that the code compares
 *   with it; `isOptional`: whether the code decides by something else if the two values differ
 */

const MOST_CHARS = 200_000; // maximum length of the code of all functions together
const MOST_SOURCE_CHARS = 50_000; // maximum length of code that is parsed as a whole; of longer code, only the functions that a row calls
const MOST_NAMES = 20;
const MOST_READS = 500;
const MOST_PARTS = 20; // maximum number of parts of a dotted name: `a.b.c` has three
const CHARS = 80;
const EITHER = ['==', '===', '!=', '!=='];
const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);
const GETTERS = ['get', 'hasOwn', 'hasOwnProperty'];
const SAME = ['trim', 'toLowerCase', 'toUpperCase']; // methods that return the same text in another form
const TELLING = new Set(['debug', 'error', 'info', 'log', 'warn']); // functions that do not change their arguments
const ASKING = ['hasOwn', 'hasOwnProperty'];
const CONVERTING = ['String', 'Number', 'stringify']; // functions that return the value of their argument in another form
/** Matches the names of functions and methods that compare two values. */
const COMPARING = /equal|same|match|compare|^(?:is|includes|startsWith|endsWith|indexOf)$/i;
const MOST_PAIRS = 20;
// statements after which the next statement may not run
const LEAVING = ['ReturnStatement', 'ThrowStatement', 'BreakStatement', 'ContinueStatement'];
/** Names of methods that score. */
const SCORING = new Set(['assert', 'check', 'evaluate', 'grade', 'judge', 'measure', 'run', 'score', 'validate']);
const TESTS = ['IfStatement', 'ConditionalExpression', 'WhileStatement', 'DoWhileStatement', 'ForStatement'];

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

/** Return what a function returns, or null if the code is nested too deeply. @template T @param {() => T | null} read @returns {T | null} */
function orNothing(read) {
  try {
    return read();
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
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

/** @param {Set<string>} names */
function listed(names) {
  return [...names].slice(0, MOST_NAMES).map((one) => one.slice(0, CHARS));
}

/** @param {string | null} of @param {string} key @returns {Uses} */
function unused(of, key) {
  return { of, key, read: false, tested: false, asked: false, keys: new Set(), compared: new Set(), owner: null };
}

/** The functions of a program, and what they read by constant names. */
class Outline {
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

/** @typedef {{node: Node, hasRest: boolean}} Certain `hasRest`: whether the code decides by something else if the node is false */

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

/** @param {Node} node */
function mayLeave(node) {
  return nodesIn(node).some(({ type }) => LEAVING.includes(type));
}

/** Return whether nothing in a node depends on a value, except texts such as `expected ${wanted}`. @param {Node} node @returns {boolean} */
function isFixed(node) {
  if (node.type === 'Identifier') return node.name === 'undefined' || node.name === 'NaN';
  return node.type === 'TemplateLiteral' || FUNCTIONS.has(node.type) || partsOf(node).every(isFixed);
}

/** Return a node and all expressions and statements in it. @param {Node} node @returns {Node[]} */
function nodesIn(node) {
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
function readOf(node) {
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

/** Return what a function can see of the names around it. @param {Node} node @param {Known} known */
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

/** Return the expressions in a pattern: defaults, and keys that are computed. @param {Node} pattern @returns {Node[]} */
function expressionsIn(pattern) {
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
function isNothing(node) {
  const isUndefined = (node.type === 'Identifier' && node.name === 'undefined') || (node.type === 'UnaryExpression' && node.operator === 'void');
  return isUndefined || (node.type === 'Literal' && node.raw === 'null');
}
