// @ts-check
/**
 * Compiles TypeScript and bundles packages with esbuild, a child process inside the sandbox. It has a time limit, reads
 * the code from its standard input and writes only its output.
 */
import { builtinModules } from 'node:module';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DEFINED, withModulePaths } from './module_paths.mjs';

/**
 * @typedef {{message: string, line: number | null, column: number | null, module: string | null, file: string | null}} Fault
 *   `module`: an import that cannot be found; `file`: the path of one of the evaluator's files, null for its own code
 * @typedef {{ok: true, text: string, map: string, isAsync: boolean} | {ok: false, faults: Fault[], crashed: string | null}} Build
 * @typedef {{esbuild: string, packages: string | null, language: string, isAsync: boolean, legacyDecorators?: boolean, unmapped?: boolean,
 *   files?: Files | null, external?: string[], aliases?: string[]}} Options `aliases`: `npm:name@version/path`, found as `name/path`
 * @typedef {{texts: Record<string, string>, path: string}} Files what came with the evaluator, and where its own code lies among it
 */

/** Loaded late: most evaluators in JavaScript start no esbuild. */
const children = () => process.getBuiltinModule('node:child_process');

const OUTPUT_BYTES = 64 * 1024 * 1024;
const FAULTS_BYTES = 1024 * 1024;
/** The map of a program that was built without reading source maps, because a file names a broken one: no line of it is known. */
const NO_PLACES = '{"version":3,"sources":[],"names":[],"mappings":""}';
const MAP = /\n?\/\/# sourceMappingURL=data:application\/json;base64,([A-Za-z0-9+/=]*)\s*$/;

/**
 * @param {string} text
 * @param {Options} options
 * @param {AbortSignal} signal kills it
 * @returns {Promise<Build>}
 * @throws {DOMException} AbortError
 */
export async function build(text, options, signal) {
  const run = () => (options.files ? runAmongFiles(text, options, options.files, signal) : runEsbuild(text, options, signal));
  let ended = await run();
  if (ended.code === null) ended = await run(); // something killed it
  const { code, stdout, stderr } = ended;
  if (code === 0) return { ok: true, ...split(stdout, options), isAsync: options.isAsync };
  const faults = parseFaults(stderr, options.files?.path);
  if (!options.isAsync && faults.some((one) => one.message.startsWith('Top-level await'))) {
    return build(text, { ...options, isAsync: true }, signal);
  }
  if (!options.legacyDecorators && faults.some((one) => /experimental decorators/i.test(one.message))) {
    return build(text, { ...options, legacyDecorators: true }, signal);
  }
  if (!options.unmapped && faults.some((one) => one.message.includes(' in source map'))) {
    return build(text, { ...options, unmapped: true }, signal);
  }
  return { ok: false, faults, crashed: faults.length ? null : stderr.slice(-2000) || `esbuild ended with ${code}` };
}

/**
 * Bundle a file of a package that a row requires while it runs, and wait for the result.
 *
 * @param {string} file
 * @param {{esbuild: string, packages: string}} tools
 * @returns {string} a CommonJS module
 * @throws {Error} with esbuild's message
 */
export function buildFile(file, { esbuild, packages }) {
  const { status, stdout, stderr, error } = children().spawnSync(esbuild, [file, ...COMMON, '--format=cjs'], {
    cwd: packages, env: { PATH: '/usr/bin:/bin' }, maxBuffer: OUTPUT_BYTES, encoding: 'utf8',
  });
  if (status === 0) return makeModulesCallable(withModulePaths(stdout, packages));
  throw new Error(parseFaults(stderr ?? '')[0]?.message ?? error?.message ?? `esbuild ended with ${status}`);
}

/** Addons and WebAssembly stay separate files; the evaluator's `require` opens them. */
const COMMON = [
  '--bundle', '--platform=node', '--target=node24', '--charset=utf8', '--color=false', '--log-level=error', '--log-limit=0',
  '--supported:dynamic-import=false', '--main-fields=main,module', '--external:./node_modules/*.node', '--external:./node_modules/*.wasm',
  ...DEFINED,
];

/** A specifier as Deno has them: its package, and a path in it. */
export const NPM = /^npm:\/?((?:@[\w.~-]+\/)?[\w.~-]+)(?:@[\w.~+-]+)?((?:\/[\w.~/-]+)?)$/;

/** Files that an import gives as their text. */
const TEXTS = ['txt', 'md', 'csv', 'tsv', 'yaml', 'yml', 'html', 'xml', 'sql', 'jsonl', 'prompt', 'jinja', 'j2', 'tmpl'].map((end) => `--loader:.${end}=text`);

/** @param {Options} options */
function esbuildArguments({ language, isAsync, legacyDecorators, unmapped, files, external, aliases }) {
  const loader = language === 'typescript' ? 'ts' : 'js';
  const compilerOptions = legacyDecorators ? { experimentalDecorators: true } : {};
  const input = files ? [files.path, '--preserve-symlinks', ...TEXTS] : [`--loader=${loader}`, `--sourcefile=${fileName(language)}`];
  return [
    ...COMMON, ...(external ?? []).map((one) => `--external:${one}`), ...(aliases ?? []).map((one) => `--alias:${one}=${one.replace(NPM, '$1$2')}`), `--format=${isAsync ? 'esm' : 'cjs'}`, ...input,
    ...(unmapped ? [] : ['--sourcemap=inline', '--sources-content=false']), `--tsconfig-raw=${JSON.stringify({ compilerOptions })}`,
  ];
}

/** @param {string} language as tracebacks show the user's file */
export function fileName(language) {
  return language === 'typescript' ? 'evaluator.ts' : 'evaluator.js';
}

/** An esbuild that was started ahead of need and reads its standard input. @type {Started | null} */
let ahead = null;

/** Start an esbuild ahead for TypeScript that may come, because its start takes longer than a compilation. @param {Options} options */
export function startAhead(options) {
  ahead = begin(options);
}

/** End the esbuild that was started ahead, so that user code finds no process. */
export function dismissAhead() {
  ahead?.child?.kill('SIGKILL');
  ahead = null;
}

/**
 * @param {string} text
 * @param {Options} options
 * @param {AbortSignal} signal
 * @param {string} [folder] working directory
 * @returns {Promise<{code: number | null, stdout: string, stderr: string}>}
 */
function runEsbuild(text, options, signal, folder) {
  const waiting = ahead !== null && ahead.child?.exitCode === null && ahead.child.signalCode === null && ahead.key === keyOf(options) ? ahead : null;
  if (waiting) ahead = null;
  const { child, done } = waiting ?? begin(options, folder);
  return new Promise((resolve, reject) => {
    const stop = () => {
      child?.kill('SIGKILL');
      reject(signal.reason);
    };
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    done.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
    child?.stdin.end(text);
  });
}

/** @typedef {{child: import('node:child_process').ChildProcessWithoutNullStreams | null, done: Promise<{code: number | null, stdout: string, stderr: string}>, key: string}} Started */

/**
 * Build an evaluator of several files: they are written to a folder of their own, which is removed again before any user
 * code runs. Packages are found through a link, whose name keeps their paths as they are without files.
 *
 * @param {string} text
 * @param {Options} options
 * @param {Files} files
 * @param {AbortSignal} signal
 */
async function runAmongFiles(text, options, files, signal) {
  const folder = fs.mkdtempSync(join(tmpdir(), 'build-'));
  try {
    for (const [path, content] of [...Object.entries(files.texts), [files.path, text]]) {
      fs.mkdirSync(join(folder, dirname(path)), { recursive: true });
      fs.writeFileSync(join(folder, path), content);
    }
    if (options.packages !== null) fs.symlinkSync(join(options.packages, 'node_modules'), join(folder, 'node_modules'));
    return await runEsbuild('', options, signal, folder);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {Options} options @param {string} [folder] @returns {Started} */
function begin(options, folder) {
  const key = keyOf(options);
  /** @type {import('node:child_process').ChildProcessWithoutNullStreams} */
  let child;
  try {
    child = children().spawn(options.esbuild, esbuildArguments(options), {
      cwd: folder ?? options.packages ?? '/', env: { PATH: '/usr/bin:/bin' }, stdio: ['pipe', 'pipe', 'pipe'],
    });
  } catch (error) { // node throws what it does not expect, such as a program that is damaged
    return { child: null, done: Promise.resolve(notStarted(error)), key };
  }
  const stdout = collect(child.stdout, OUTPUT_BYTES);
  const stderr = collect(child.stderr, FAULTS_BYTES);
  child.stdin.on('error', () => {}); // esbuild may end without reading; its exit code is checked
  /** @type {Started['done']} */
  const done = new Promise((resolve) => {
    child.on('error', (error) => resolve(notStarted(error)));
    child.on('close', (code, signal) => resolve({ code, stdout: stdout(), stderr: stderr() || (signal ? broken(`ended by ${signal}`) : '') }));
  });
  return { child, done, key };
}

/** @param {any} error of `spawn` */
function notStarted(error) {
  return { code: null, stdout: '', stderr: broken(error?.code ?? error) };
}

/** @param {string} how */
function broken(how) {
  return `esbuild does not work on this host (${how}), which is no fault of the code: \`evaluator-host doctor\` says more to whoever runs the host`;
}

/** @param {Options} options */
function keyOf(options) {
  return JSON.stringify([options.esbuild, options.packages, esbuildArguments(options)]);
}

/** @param {import('node:stream').Readable} stream @param {number} limit */
function collect(stream, limit) {
  /** @type {Buffer[]} */
  const chunks = [];
  let held = 0;
  stream.on('data', (chunk) => {
    if (held < limit) chunks.push(chunk);
    held += chunk.length;
  });
  return () => Buffer.concat(chunks).toString('utf8');
}

/** Return text and source map of an output. @param {string} output @param {Options} options */
function split(output, { isAsync, packages, unmapped, files }) {
  const map = MAP.exec(output);
  const text = withModulePaths(map ? output.slice(0, map.index) : output, packages, files ? [...Object.keys(files.texts), files.path] : []);
  const script = isAsync ? asFunctionBody(text) : makeModulesCallable(text);
  if (unmapped) return { text: script, map: NO_PLACES };
  return { text: script, map: map ? Buffer.from(map[1], 'base64').toString('utf8') : '' };
}

/**
 * Replace esbuild's `__toESM`: `import * as _ from "lodash"` has to be callable when the module is, and
 * `import _ from "lodash"` has to be the module. The replacement stays on the lines of the original.
 *
 * @param {string} text
 */
export function makeModulesCallable(text) {
  return text.replace(/^var (__toESM\d*) = \([\s\S]*?^\)\);$/m, (original, name) => {
    const lines = original.split('\n').length;
    return `var ${name} = ${CALLABLE};${'\n'.repeat(lines - 1)}`;
  });
}

/**
 * Turn esbuild's ES module into the body of an async function, which allows `await` at its top level. The remaining
 * imports are of built-in modules. Line numbers do not change.
 *
 * @param {string} text
 */
export function asFunctionBody(text) {
  const imported = text
    .replace(/^import (?:([\w$]+)(?:, )?)?(?:\* as ([\w$]+)|\{ (.*) \})? from ("[^"\n]+");$/gm, (_, only, all, some, module) => {
      const names = [only, all].filter(Boolean).map((name) => `${name} = require(${module})`);
      if (some) names.push(`{ ${some.replace(/ as /g, ': ')} } = require(${module})`);
      return `var ${names.join(', ')};`;
    })
    .replace(/^import ("[^"\n]+");$/gm, 'require($1);');
  return imported.replace(/^export \{\n([^}]*)\n\};\s*$/m, (_, list) => {
    const names = list.split(',').map((/** @type {string} */ part) => part.trim().split(' as '));
    const entries = names.map((/** @type {string[]} */ [name, alias]) => `${JSON.stringify(alias ?? name)}: ${name}`);
    return `module.exports = { __esModule: true, ${entries.join(', ')} };`;
  });
}

/** A function gets a proxy that adds `default`; any other value is copied, as esbuild does. */
const CALLABLE = `(mod, isNodeMode, target) => {
 const own = (key) => Object.prototype.hasOwnProperty.call(mod, key);
 if (typeof mod === "function" && !mod.__esModule) return new Proxy(mod, {
  get: (from, key) => (key === "default" && !own(key) ? from : Reflect.get(from, key)),
  has: (from, key) => key === "default" || Reflect.has(from, key) });
 target = mod != null ? Object.create(Object.getPrototypeOf(Object(mod))) : {};
 if (isNodeMode || !mod || !mod.__esModule) Object.defineProperty(target, "default", { value: mod, enumerable: true });
 if (typeof mod === "object" || typeof mod === "function") for (const key of Object.getOwnPropertyNames(Object(mod))) {
  if (Object.prototype.hasOwnProperty.call(target, key)) continue;
  const found = Object.getOwnPropertyDescriptor(mod, key);
  Object.defineProperty(target, key, { get: () => mod[key], enumerable: !found || found.enumerable });
 }
 return target; }`.replace(/\n\s*/g, ' ');

/** @param {string} stderr of esbuild @param {string} [own] path of the evaluator's code @returns {Fault[]} */
export function parseFaults(stderr, own) {
  const faults = [];
  const blocks = stderr.split(/^(?:✘|X) \[ERROR\] /m).slice(1);
  for (const block of blocks) {
    const message = block.slice(0, block.indexOf('\n') < 0 ? undefined : block.indexOf('\n')).replace(/ \[plugin .*\]$/, '');
    const place = /^ {4}(.+?):(\d+):(\d+):\n {6}\d+ │ (.*)$/m.exec(block);
    const isOwn = place !== null && (own === undefined ? /^evaluator\.[jt]s$/.test(place[1]) : place[1] === own);
    const [, found, written] = /^Could not resolve "(.*?)"(?: \(originally "(.*)"\))?$/.exec(message) ?? [];
    const module = written ?? found ?? null;
    faults.push({
      message: place && !isOwn && own !== undefined ? `${message} (${place[1]}:${place[2]})` : message,
      module,
      line: isOwn ? Number(place[2]) : null,
      column: isOwn ? characterColumn(place[4], Number(place[3])) : null,
      file: place && !isOwn ? place[1] : null,
    });
  }
  return faults;
}

/** Return the column in characters from 1; esbuild counts bytes from 0. @param {string} line @param {number} bytes */
function characterColumn(line, bytes) {
  return Buffer.from(line).toString('utf8', 0, bytes).length + 1;
}

/** @param {string} name of a module @returns {boolean} */
export function isBuiltin(name) {
  return name.startsWith('node:') || builtinModules.includes(name);
}
