// @ts-check
/** Turns the code of a `load` into a program: appends the accessor, and calls esbuild for code that V8 cannot run. */
import { packageOf, withPlaceholders, withoutPackages } from './absent.mjs';
import { withAccessor } from './accessor.mjs';
import { pinHint } from './answers.mjs';
import { Bundler, NPM, fileName, isBuiltin } from './bundle.mjs';
import { isProgram, sourceOf } from './entry.mjs';
import { isOwnFile } from './own_files.cjs';
import { Positions, SCRIPT, failure } from './positions.mjs';
import { clientOf, keysFor } from './dialects/clients.cjs';
import { withStandIns } from './stand_ins.mjs';
import { wantedNames } from './wanted_names.mjs';

/**
 * @typedef {{source: string, filename: string, isAsync: boolean, wanted: string[], perRow: boolean, unknown: string[], keys: Record<string, string>}} Program
 *   `perRow`: runs for each row, and not at load; `unknown`: missing packages that are not well known, and probably are the author's own modules; `keys`: placeholders for the keys of
 *   its clients, by the name of the environment variable
 * @typedef {{program: Program, positions: Positions, bundle: unknown, missing: {module: string, line: number, file?: string}[], notes: Note[],
 *   absent?: string[], refused?: Unloadable | null}} Loadable `absent`: modules in whose place there are placeholders; `refused`: the result if the entry needs one of them
 * @typedef {{failure: import('./positions.mjs').Failure, missing: {module: string, line: number, file?: string}[], unknown?: string[]}} Unloadable `unknown`: missing packages that are not well known
 * @typedef {{code: string, bundle: any, files?: Record<string, string>, path?: string | null, known?: Record<string, string>}} LoadBody
 * @typedef {import('./bundle.mjs').Files} Files
 * @typedef {import('./bundle.mjs').Note} Note
 * @typedef {{esbuild: string | null, packages: string | null, memoryMb: number, files?: Files | null, known?: Record<string, string>}} Tools
 */

const MUCH_MB = 1024; // enough memory, in MB, to bundle packages with ten thousand files

/** A bundler that was started before there was code to build. @type {Bundler | null} */
let ahead = null;

/** Start esbuild in advance, because the next load may be TypeScript. @param {{esbuild: string, packages: string | null, memoryMb: number}} tools */
export function startAhead({ esbuild, packages, memoryMb }) {
  ahead = new Bundler(esbuild, memoryMb);
  void ahead.warm(packages);
}

/** Return the bundler that was started in advance, or else a new one; the caller has to end it. @param {string} esbuild @param {number} memoryMb */
function takeBundler(esbuild, memoryMb) {
  const taken = ahead ?? new Bundler(esbuild, memoryMb);
  ahead = null;
  return taken;
}

/** End the bundler that was started in advance, so that user code does not find its process. */
export function dismissAhead() {
  ahead?.end();
  ahead = null;
}

/** Matches syntax or modules that need a bundler. A false match costs only time. */
const MODULE_SYNTAX = /\b(?:import|export)\b/;
const SCRIPTS = /\.[cm]?[jt]sx?$/;
const REQUIRE = /\brequire\s*\(/;

/**
 * @param {LoadBody} body
 * @param {{language: string, contract: string, entry: string | null, check: boolean}} order
 * @param {Tools} tools
 * @param {AbortSignal} signal
 * @returns {Promise<Loadable | Unloadable>}
 */
export async function prepare(body, order, tools, signal) {
  const code = sourceOf(body.code, order);
  const shown = body.path ?? fileName(order.language);
  const perRow = isProgram(order.contract);
  const wanted = perRow ? [] : wantedNames(order.entry, code, body.code);
  const files = filesOf(body, order);
  if (isBundle(body.bundle) && !order.check) {
    const { text, map, isAsync, notes, absent, refused } = body.bundle;
    const positions = new Positions(code, shown, map, Object.keys(body.files ?? {}), text, refused?.missing);
    return { program: program(text, isAsync, wanted, perRow, refused?.unknown), positions, bundle: body.bundle, missing: [], notes, absent, refused };
  }
  const text = perRow ? code : withAccessor(code, wanted);
  const plain = new Positions(code, shown, '', Object.keys(body.files ?? {}));
  if (!needsEsbuild(code, order, tools, files)) return { program: program(text, perRow, wanted, perRow), positions: plain, bundle: null, missing: [], notes: [] };
  return compile(text, wanted, plain, order, { ...tools, files, known: body.known }, signal);
}

/** Return the files of an evaluator that has several, with stand-ins for packages that only wrap scorers; null for an evaluator that has only its code. @param {LoadBody} body @param {{language: string}} order @returns {Files | null} */
export function filesOf(body, order) {
  if (body.files === undefined) return null;
  const texts = Object.entries(body.files).map(([path, text]) => [path, SCRIPTS.test(path) ? withStandIns(text) : text]);
  return { texts: Object.fromEntries(texts), path: body.path ?? fileName(order.language) };
}

/** @param {string} text @param {{language: string, check: boolean}} order @param {Tools} tools @param {Files | null} files */
function needsEsbuild(text, { language, check }, tools, files) {
  if (language === 'typescript' || MODULE_SYNTAX.test(text)) return true;
  return REQUIRE.test(text) && (files !== null || tools.packages !== null || (check && tools.esbuild !== null));
}

/**
 * @param {string} text
 * @param {string[]} wanted
 * @param {Positions} plain
 * @param {{language: string, contract: string, check: boolean}} order
 * @param {Tools} tools
 * @param {AbortSignal} signal
 * @returns {Promise<Loadable | Unloadable>}
 */
export async function compile(text, wanted, plain, order, tools, signal) {
  if (tools.esbuild === null) {
    return { failure: failure('load_error', 'this runner was started without esbuild and cannot compile TypeScript or imports'), missing: [] };
  }
  const bundler = takeBundler(tools.esbuild, tools.memoryMb);
  const built = await buildWith(bundler, text, order, tools, signal).finally(() => bundler.end());
  if (built.ok) {
    const { absent } = built;
    const refused = built.faults.length > 0 ? { ...refuse(built.faults, plain, order.language), unknown: built.unknown } : null;
    const bundle = { version: 1, text: built.text, map: built.map, isAsync: built.isAsync, notes: built.notes, absent, refused };
    return { absent, refused, program: program(built.text, built.isAsync, wanted, isProgram(order.contract), built.unknown), positions: new Positions(plain.code, plain.shownName, built.map, [...plain.files], built.text, refused?.missing), bundle, missing: [], notes: built.notes };
  }
  if (built.crashed !== null && built.starved) return { failure: tooLarge(tools.memoryMb), missing: [] };
  if (built.crashed !== null) return { failure: failure('load_error', `the code could not be compiled: ${built.crashed}`), missing: [] };
  return refuse(built.faults, plain, order.language);
}

/** @param {number} memoryMb */
function tooLarge(memoryMb) {
  return failure('memory_limit', `bundling the code with its packages takes more than the ${memoryMb} MB of the sandbox`, {
    hint: `raise limits.memory_mb to ${Math.max(MUCH_MB, 2 * memoryMb)}, or import only the part of the package that is needed`,
  });
}

/**
 * @param {Bundler} bundler
 * @param {string} text
 * @param {{language: string, check: boolean}} order
 * @param {Tools} tools
 * @param {AbortSignal} signal
 * @returns {Promise<Extract<import('./bundle.mjs').Build, {ok: true}> & {absent: string[], unknown: string[], faults: import('./bundle.mjs').Fault[]} | Extract<import('./bundle.mjs').Build, {ok: false}>>}
 */
async function buildWith(bundler, text, order, tools, signal) {
  /** @type {import('./bundle.mjs').Options} */
  let options = { packages: tools.packages, language: order.language, isAsync: false, files: tools.files ?? null };
  let built = await bundler.build(text, options, signal);
  const aliases = built.ok ? [] : built.faults.map((one) => one.module ?? '').filter((module) => NPM.test(module));
  if (aliases.length > 0) {
    options = { ...options, aliases };
    built = await bundler.build(text, options, signal);
  }
  const absent = built.ok ? [] : absentIn(built.faults, order.check);
  if (absent.length > 0) built = await bundler.build(text, { ...options, external: absent }, signal);
  if (built.ok) return { ...built, absent: [], unknown: [], faults: [] };
  const lacked = absent.length > 0 ? [] : lackedIn(built.faults, order.check, tools.known ?? {});
  if (lacked.length === 0) return built;
  const { faults } = built;
  const other = await bundler.build(text, { ...options, external: lacked }, signal);
  const known = lacked.filter((one) => isOwnFile(one) || packageOf(one, tools.known ?? {}) !== null && (order.check || clientOf(one) === null));
  const own = known.filter((one) => isOwnFile(one) || packageOf(one, tools.known ?? {}) === '');
  const needed = faults.filter((one) => known.includes(one.module ?? ''));
  return other.ok ? { ...other, text: withPlaceholders(other.text, known, own), absent: known, unknown: own.filter((one) => !isOwnFile(one)), faults: needed.length > 0 ? needed : faults } : built;
}

/**
 * Return the missing modules if they are the only problem: well-known packages and clients that are not pinned, or files of
 * the author's that were not sent.
 *
 * @param {import('./bundle.mjs').Fault[]} faults
 * @param {boolean} check whether clients have to be reported, too
 * @param {Record<string, string>} known
 */
function lackedIn(faults, check, known) {
  const missing = faults.map(({ module, file }) => {
    const isOwn = module !== null && !file?.startsWith('node_modules/');
    return isOwn && ((isOwnFile(module) && file === null) || packageOf(module, known) !== null || (!check && clientOf(module) !== null)) ? module : '';
  });
  return missing.includes('') ? [] : [...new Set(missing)];
}

/**
 * Return the missing modules if they are the only problem: clients of models and platforms that are not pinned, or modules
 * that a package imports, but neither contains nor depends on. Such an import fails when it runs, as in Node.
 *
 * @param {import('./bundle.mjs').Fault[]} faults
 * @param {boolean} check whether clients have to be reported, too
 * @returns {string[]}
 */
function absentIn(faults, check) {
  const missing = faults.map(({ module, file }) => {
    const mayLack = module !== null && ((!check && clientOf(module) !== null) || (file?.startsWith('node_modules/') && !module.startsWith('.')));
    return mayLack ? module : '';
  });
  return missing.includes('') ? [] : [...new Set(missing)];
}

/** Whether a file is one of the evaluator's files, not its own code or a file of a package. @param {string | null} file */
function isFile(file) {
  return file !== null && !file.startsWith('node_modules/');
}

/** @param {import('./bundle.mjs').Fault[]} faults @param {Positions} plain @param {string} language @returns {Unloadable} */
function refuse(faults, plain, language) {
  const missing = faults.filter((one) => one.module !== null && !isBuiltin(one.module)).map((one) => ({ module: String(one.module), line: one.line ?? 1, ...(isFile(one.file) ? { file: one.file } : {}) }));
  const worst = faults.find((one) => one.module === null) ?? faults[0];
  const line = worst.file === null ? worst.line : null;
  const place = plain.within(line, worst.column) ?? { line: line === null ? null : plain.lineCount, column: null };
  if (worst.module === null) {
    const hint = language === 'javascript' && /^(Expected|Unexpected)/.test(worst.message) ? 'if this is TypeScript, set `language` to typescript' : worst.hint ?? null;
    return { failure: failure('syntax_error', worst.message, { type: 'SyntaxError', ...place, hint }), missing };
  }
  const relative = /^[./]/.test(worst.module);
  const hint = relative ? 'send the file that it imports too, in `files`: {"helpers/text.js": "…"}, by its path from this file' : pinHint(worst.module);
  const from = worst.file === null ? '' : `, imported by ${worst.file}`;
  return { failure: failure('load_error', `Cannot find module '${worst.module}'${from}`, { type: 'Error', ...place, hint }), missing };
}

/** @param {string} source @param {boolean} isAsync @param {string[]} wanted @param {boolean} perRow @param {string[]} [unknown] @returns {Program} */
function program(source, isAsync, wanted, perRow, unknown = []) {
  return { source, filename: SCRIPT, isAsync, wanted, perRow, unknown, keys: keysFor(source, withoutPackages(source)) };
}

/** @param {any} bundle the bundle of an earlier load, which the host kept unchanged */
function isBundle(bundle) {
  return bundle?.version === 1 && typeof bundle.text === 'string' && typeof bundle.map === 'string' && typeof bundle.isAsync === 'boolean' && Array.isArray(bundle.notes);
}
