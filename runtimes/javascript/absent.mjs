// @ts-check
/**
 * Lets code load although it imports well-known packages that are not pinned; only code that uses such an import fails.
 *
 * In the bundled program, each such import gives a placeholder, which can be read, called and constructed while the
 * code loads. That is allowed only if the parser shows that the entry reaches nothing that was made with a placeholder,
 * and that placeholders have changed nothing else, because code that tests or compares a placeholder would not notice
 * that the package is absent. Names are compared without their scopes; if in doubt, a name counts as used.
 *
 * A missing file of the author's, or an unknown package, gives a placeholder, too. Once the code has loaded, reading a
 * property of such a placeholder throws the error of a missing module, so that only calls that use the module fail.
 */
import { clientOf } from './dialects/clients.cjs';
import { parse } from './parser.mjs';
import { PREFIX } from './stand_ins.mjs';

/** @typedef {import('./nodes.mjs').Node} Node */

// the function that makes placeholders; the names of the functions inside a placeholder begin with this name, too
export const MADE = '__evaluator_host_absent__';
const ENTRIES = '__evaluator_host_entries__';
const LIST = '__evaluator_host_list__';
const PLACEHOLDER = `;function ${MADE}(file) { const use = function ${MADE}use() { `
  + `if (file && ${MADE}.loaded) require(file); return it; }; `
  + `const it = new Proxy(function () {}, { get: function ${MADE}get(_, key) { `
  + 'if (typeof key === "symbol" && use()) throw new Error("a package that it imports is not pinned"); return key === "then" || key === "__esModule" ? undefined : use(); }, '
  + `apply: use, construct: use, set: () => true }); return it; };${MADE}.loaded = true;`;
const MODULE = /\n(?=\/\/ \S+\.\w+\n)/; // esbuild's comment above each module; other comments in packages may look similar
const PACKAGE = /^\/\/ \S*\bnode_modules\//; // esbuild's comment above a module of a package
const READERS = new Set(['eval', 'Function', 'globalThis']);
const MOST_CHARS = 500_000;

/** Return the well-known package that a specifier names. Return "" for an unknown package that the code imports, and null for anything else. @param {string} specifier @param {Record<string, string>} known */
export function packageOf(specifier, known) {
  const name = /^(?:@[^/]+\/)?[^/@]+/.exec(specifier)?.[0] ?? '';
  return Object.hasOwn(known, name) ? known[name] : null;
}

/** Return a bundled program whose imports of these modules at its top level give placeholders. @param {string} text @param {string[]} modules @param {string[]} own the modules that the author wrote */
export function withPlaceholders(text, modules, own) {
  const made = modules.reduce((all, one) => {
    const asked = JSON.stringify(one).replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    return all.replace(new RegExp(`^((?:var|let|const) [^\\n]*?= (?:__toESM\\d*\\()?)require\\(${asked}\\)`, 'gm'), `$1${MADE}(${own.includes(one) ? JSON.stringify(one).replace(/\$/g, '$$$$') : ''})`);
  }, text);
  return made + PLACEHOLDER;
}

/** Return a program without the code that makes its placeholders. @param {string} text */
export function withoutPlaceholders(text) {
  return text.split(`;function ${MADE}(`, 1)[0];
}

/** Return a bundled program without the code of packages. @param {string} program */
export function withoutPackages(program) {
  return program.split(MODULE).filter((one) => !PACKAGE.test(one)).join('\n');
}

/**
 * Return whether a program needs, or may need, its placeholders for an entry.
 *
 * @param {string} program @param {string} entry
 * @param {number | null} [at] position of the entry in the lists of evaluators that the code reports
 * @param {boolean} [calls] whether missing files count even if the code uses them only when it is called
 */
export function needs(program, entry, at = null, calls = false) {
  const source = withoutPackages(program);
  const tree = source.length > MOST_CHARS ? null : parse(source);
  if (tree === null) return true;
  try {
    return tree.body.some((/** @type {Node} */ one) => mayReadGlobals(one)) || readsPlaceholder(tree.body, entry, at) || (calls && readsPlaceholder(tree.body, entry, at, true));
  } catch (error) {
    if (error instanceof RangeError) return true; // the code is nested too deeply
    throw error;
  }
}

/** Matches a use of another runtime's global. */
const FOREIGN = /(?<![\w$.])(Bun|Deno)\./;

/** Return what matches code that asks whether it runs on another runtime. @param {string} name */
function testsFor(name) {
  return new RegExp(`typeof ${name}\\b|\\b(?:global|globalThis|self)\\??\\.${name}\\b|["'\`]${name}["'\`]\\s*(?:\\]|in\\b)|\\bversions\\??\\.${name.toLowerCase()}\\b`);
}

/** Return the other runtime (Bun or Deno) whose global an entry uses without testing whether it exists, or null. @param {string} program @param {string} entry @returns {string | null} */
export function foreignRuntime(program, entry) {
  const source = withoutPackages(program);
  const name = FOREIGN.exec(source)?.[1];
  const tree = name === undefined || source.length > MOST_CHARS || testsFor(name).test(source) ? null : parse(source);
  if (name === undefined || tree === null) return null;
  const parts = tree.body.filter((/** @type {Node} */ one) => !isOfRunner(one)).map((/** @type {Node} */ node) => ({ declared: declaredBy(node), read: namesIn(node) }));
  const reached = new Set(startsOf(tree.body, entry));
  for (let before = -1; before !== reached.size;) {
    before = reached.size;
    for (const { declared, read } of parts) if (declared.some((/** @type {string} */ one) => reached.has(one))) read.forEach((/** @type {string} */ one) => reached.add(one));
  }
  return reached.has(name) ? name : null;
}

/**
 * Return whether code may read module-level names that are not written in it: by `eval`, or through a `this` outside
 * classes.
 *
 * @param {Node} node @param {boolean} inClass @returns {boolean}
 */
function mayReadGlobals(node, inClass = false) {
  if ((node.type === 'ThisExpression' && !inClass) || node.type === 'WithStatement' || (node.type === 'Identifier' && READERS.has(node.name))) return true;
  return partsOf(node).some((one) => mayReadGlobals(one, inClass || node.type === 'ClassBody'));
}

/** @param {Node[]} body @param {string} entry @param {number | null} at @param {boolean} [calls] */
function readsPlaceholder(body, entry, at, calls = false) {
  const own = body.filter((one) => !isOfRunner(one));
  const every = own.map((node) => ({ node, declared: declaredBy(node), read: namesIn(node) }));
  const files = every.flatMap(({ declared }) => declared).filter((name) => isOfFile(own, name));
  const inLists = new Set(own.flatMap(listsIn).flatMap(namesIn));
  // if no code uses the module, it was imported for its side effects
  if (files.some((name) => !inLists.has(name) && !every.some(({ declared, read }) => !declared.includes(name) && read.includes(name)))) return true;
  const late = new Set(calls ? [] : files.filter((name) => !every.some(({ node, declared }) => !declared.includes(name) && readsAtOnce(node, name))));
  const parts = every.filter(({ declared }) => !declared.some((name) => late.has(name)));
  const made = new Set([MADE]);
  for (const { node } of parts) {
    for (const one of node.type === 'VariableDeclaration' ? node.declarations : []) {
      if (one.init && made.has(rootOf(one.init) ?? '')) boundBy(one.id).forEach((name) => made.add(name));
    }
  }
  const reached = new Set(made);
  for (let before = -1; before !== reached.size;) {
    before = reached.size;
    for (const { declared, read } of parts) if (read.some((name) => reached.has(name))) declared.forEach((name) => reached.add(name));
  }
  const ofRunner = declaratorsIn(own).filter((one) => keepsNothing(one.init)).flatMap((one) => boundBy(one.id));
  const named = startsOf(body, entry);
  const entries = named.length > 0 || at === null ? named : membersOf(body, at);
  const starts = [...entries, ...parts.filter(({ declared }) => declared.length === 0).flatMap(({ read }) => read)];
  if (entries.length === 0 || starts.some((name) => reached.has(name))) return true;
  return !calls && parts.some(({ node, read }) => exportsOf(node) === null && read.some((name) => reached.has(name)) && changesOthers(node, new Set([...made, ...ofRunner]), reached));
}

/** @param {Node[]} body @returns {Node[]} */
function declaratorsIn(body) {
  return body.flatMap((node) => (node.type === 'VariableDeclaration' ? node.declarations : []));
}

/** Return whether a value is one of the runner's replacements for a package (a stand-in or a client), which do not store their arguments. @param
 * {Node | null} node @returns {boolean} */
function keepsNothing(node) {
  if (node?.type !== 'CallExpression') return false;
  const [first] = node.arguments;
  if (node.callee.name === 'require') return clientOf(String(first?.value)) !== null;
  return /^__toESM\d*$/.test(node.callee.name ?? '') ? keepsNothing(first) : node.callee.name?.startsWith(PREFIX) === true;
}

/** Return whether a name holds the placeholder for a file that the author wrote. @param {Node[]} body @param {string} name */
function isOfFile(body, name) {
  const one = declaratorsIn(body).find((each) => each.id.name === name);
  const call = one?.init?.arguments?.[0]?.type === 'CallExpression' ? one.init.arguments[0] : one?.init;
  return call?.callee?.name === MADE && call.arguments[0]?.type === 'Literal';
}

/** Return whether code uses a name, other than by reading a property of its value in a function, which runs `later`. @param {Node} node @param {string} name @param
 * {boolean} later @returns {boolean} */
function readsAtOnce(node, name, later = false) {
  if (node.type === 'Identifier') return node.name === name;
  if (later && node.type === 'MemberExpression' && node.object.name === name) return node.computed && readsAtOnce(node.property, name, later);
  return exportsOf(node) === null && partsOf(node).some((one) => readsAtOnce(one, name, later || /Function/.test(node.type)));
}

/** Return whether esbuild or the runner wrote a statement; such a statement passes names on without reading them. @param {Node} node */
function isOfRunner(node) {
  if (node.type === 'FunctionDeclaration') return node.id.name === MADE;
  const { type, left, right, callee } = node.expression ?? {};
  if (type === 'CallExpression') return callee.name === ENTRIES;
  if (type === 'LogicalExpression') return left.type === 'Literal' && left.value === 0;
  if (type === 'AssignmentExpression' && left.object?.name === MADE) return true;
  const isExports = type === 'AssignmentExpression' && left.type === 'MemberExpression' && left.object.name === 'module';
  return isExports && (right.callee?.name?.startsWith('__toCommonJS') || right.properties?.[0]?.key?.name === '__esModule');
}

/** Return the module-level names that a row calls; an empty list if they are not found. @param {Node[]} body @param {string} entry */
function startsOf(body, entry) {
  const [name] = entry.split('.');
  const found = body.some((node) => declaredBy(node).includes(name)) ? [name] : [];
  for (const node of body) {
    const listed = exportsOf(node)?.arguments[1] ?? (isOfRunner(node) ? node.expression?.right : null);
    for (const one of listed?.properties ?? []) {
      if ((one.key?.name ?? one.key?.value) === name) found.push(...namesIn(one.value));
    }
  }
  return found;
}

/** Return the names in the evaluator at position `at` of the lists that the code passes to `LIST`. If a list is not written out in the code, return the names
 * in all lists. @param {Node[]} body @param {number} at @returns {string[]} */
function membersOf(body, at) {
  const lists = body.flatMap(listsIn).map((one) => (one.type === 'ArrowFunctionExpression' ? one.body : one));
  const members = lists.flatMap((one) => (one.type === 'ArrayExpression' ? one.elements : [one]));
  const isWritten = lists.every((one) => one.type === 'ArrayExpression') && members.every((one) => one !== null && one.type !== 'SpreadElement');
  const starts = (isWritten ? members.slice(at, at + 1) : lists).flatMap(namesIn);
  return starts.length > 0 ? starts : [ENTRIES];
}

/** @param {Node} node @returns {Node[]} */
function listsIn(node) {
  if (node.callee?.name === LIST) return node.arguments;
  return Object.values(node).flat().filter((one) => typeof one?.type === 'string').flatMap(listsIn);
}

/** Return whether a statement, while the code loads, may store a placeholder elsewhere or read one. @param {Node} node @param {Set<string>} made names that hold placeholders or other replacements of packages @param {Set<string>} reached @returns {boolean} */
function changesOthers(node, made, reached) {
  if (/Function/.test(node.type) || node.type === 'MethodDefinition') return false;
  const reads = () => namesIn(node).some((name) => reached.has(name));
  const calls = ['CallExpression', 'NewExpression'].includes(node.type);
  if (calls && !made.has(rootOf(node) ?? '') && !/^__toESM\d*$/.test(node.callee.name ?? '') && reads()) return true;
  const decides = ['AssignmentExpression', 'UpdateExpression', 'TaggedTemplateExpression', 'TemplateLiteral', 'BinaryExpression', 'UnaryExpression', 'AwaitExpression', 'SpreadElement', 'LogicalExpression', 'ConditionalExpression'];
  if (decides.includes(node.type) && reads()) return true;
  return partsOf(node).some((one) => changesOthers(one, made, reached));
}

/** Return the name with which a chain such as `a.b().c` begins, or null if it does not begin with a name. @param {Node | null} node @returns {string
 * | null} */
function rootOf(node) {
  switch (node?.type) {
    case 'Identifier': return node.name;
    case 'MemberExpression': return rootOf(node.object);
    case 'NewExpression': return rootOf(node.callee);
    case 'ChainExpression': return rootOf(node.expression);
    case 'SequenceExpression': return rootOf(node.expressions.at(-1));
    case 'CallExpression': return /^__toESM\d*$/.test(node.callee.name ?? '') ? rootOf(node.arguments[0]) : rootOf(node.callee);
    default: return null;
  }
}

/** Return the call with which esbuild gives an object the exports of a module, or null for any other statement. @param {Node} node @returns {Node | null} */
function exportsOf(node) {
  const { type, callee } = node.expression ?? {};
  return type === 'CallExpression' && /^__export\d*$/.test(callee.name ?? '') ? node.expression : null;
}

/** @param {Node} node a statement at module level @returns {string[]} */
function declaredBy(node) {
  const exported = exportsOf(node);
  if (exported !== null) return [exported.arguments[0].name];
  if (node.type === 'FunctionDeclaration' || node.type === 'ClassDeclaration') return node.id === null ? [] : [node.id.name];
  return node.type === 'VariableDeclaration' ? node.declarations.flatMap((/** @type {Node} */ one) => boundBy(one.id)) : [];
}

/** @param {Node} pattern @returns {string[]} */
function boundBy(pattern) {
  return pattern.type === 'Identifier' ? [pattern.name] : namesIn(pattern);
}

/** Return every name in a syntax tree, except names of members and keys. @param {Node} node @returns {string[]} */
function namesIn(node) {
  if (node.type === 'Identifier') return [node.name];
  const isPlain = (node.type === 'MemberExpression' || node.type === 'Property' || node.type === 'MethodDefinition' || node.type === 'PropertyDefinition') && !node.computed;
  const skipped = isPlain ? node.property ?? (node.shorthand ? null : node.key) : null;
  return partsOf(node).filter((one) => one !== skipped).flatMap(namesIn);
}

/** Return the parts of a node; for a call of `LIST`, return none, because its argument runs only on request. @param {Node} node @returns {Node[]} */
function partsOf(node) {
  return node.callee?.name === LIST ? [] : Object.values(node).flat().filter((one) => typeof one?.type === 'string');
}
