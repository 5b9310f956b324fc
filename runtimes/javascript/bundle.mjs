// @ts-check
/**
 * Compiles TypeScript and bundles packages with esbuild, a child process inside the sandbox (`esbuild.mjs`). It has a
 * time limit, gets the code in memory, and returns its output in memory.
 */
import { builtinModules } from 'node:module';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { kindsOf } from './decorators.mjs';
import { Esbuild, environmentOf } from './esbuild.mjs';
import { DEFINED, withModulePaths } from './module_paths.mjs';
import { asksForMetadata, configOf } from './tsconfig.mjs';

/**
 * @typedef {{message: string, line: number | null, column: number | null, module: string | null, file: string | null, hint?: string}} Fault
 *   `module`: an import that cannot be found; `file`: the path of one of the evaluator's files, null for its own code
 * @typedef {{code: string, message: string}} Note
 * @typedef {{ok: true, text: string, map: string, isAsync: boolean, notes: Note[]} | {ok: false, faults: Fault[], crashed: string | null, starved?: boolean}} Build `starved`: memory ran out
 * @typedef {{packages: string | null, language: string, isAsync: boolean, legacyDecorators?: boolean, unmapped?: boolean,
 *   files?: Files | null, external?: string[], aliases?: string[]}} Options `aliases`: `npm:name@version/path`, found as `name/path`
 * @typedef {{texts: Record<string, string>, path: string}} Files the files that came with the evaluator, and the path of its own code among them
 */

const OUTPUT_BYTES = 64 * 1024 * 1024;
/** An empty source map, for a program that was built without source maps because one of its files has a broken one. */
const NO_PLACES = '{"version":3,"sources":[],"names":[],"mappings":""}';
const MAP = /\n?\/\/# sourceMappingURL=data:application\/json;base64,([A-Za-z0-9+/=]*)\s*$/;

/** The esbuild process of one load. */
export class Bundler {
  /** @type {Esbuild | null} */
  #esbuild = null;
  #ended = false;

  /** @param {string} program path of esbuild @param {number} memoryMb memory of the sandbox */
  constructor(program, memoryMb) {
    this.program = program;
    this.memoryMb = memoryMb;
  }

  /** Start esbuild and let it build something, because the first build takes longer than later ones. @param {string | null} packages */
  async warm(packages) {
    await this.build(SMALL, { packages, language: 'typescript', isAsync: false }, new AbortController().signal);
  }

  /**
   * @param {string} text
   * @param {Options} options
   * @param {AbortSignal} signal kills esbuild
   * @returns {Promise<Build>}
   * @throws {DOMException} AbortError
   */
  async build(text, options, signal) {
    const run = () => (options.files ? this.#runAmongFiles(text, options, options.files, signal) : this.#run(text, options, signal));
    let ended = await run();
    if ('crashed' in ended && ended.killed && !this.#ended) ended = await run();
    if ('crashed' in ended) return { ok: false, faults: [], crashed: ended.crashed, starved: ended.starved };
    const lost = ended.warnings.filter((one) => one.text.startsWith('Cannot find base config file'));
    if (ended.errors.length === 0 && lost.length === 0) return this.#built(text, ended.output, options, signal);
    const faults = ended.errors.length > 0 ? faultsOf(ended.errors, options.files?.path) : faultsOf(lost, options.files?.path).map((one) => ({ ...one, hint: 'send that file too, in `files`, and refer to it by its path; or leave `extends` out' }));
    if (!options.isAsync && faults.some((one) => one.message.startsWith('Top-level await'))) {
      return this.build(text, { ...options, isAsync: true }, signal);
    }
    if (!options.legacyDecorators && configOf(options.files) === null && faults.some((one) => /experimental decorators/i.test(one.message))) {
      return this.build(text, { ...options, legacyDecorators: true }, signal);
    }
    if (!options.unmapped && faults.some((one) => one.message.includes(' in source map'))) {
      return this.build(text, { ...options, unmapped: true }, signal);
    }
    return { ok: false, faults, crashed: null };
  }

  /** Return the build. If the author's configuration does not say for which rules the code's decorators were written, find out. @param {string} text @param {string} output @param {Options} options @param {AbortSignal} signal @returns {Promise<Build>} */
  async #built(text, output, options, signal) {
    const made = { ...split(output, options), isAsync: options.isAsync };
    const kinds = options.language === 'typescript' && !options.legacyDecorators ? kindsOf(made.text) : null;
    if (kinds === null && made.text.includes('__decorateClass') && asksForMetadata(options.files)) {
      return { ok: true, ...made, notes: [{ code: 'no_decorator_metadata', message: WITHOUT_METADATA }] };
    }
    if (kinds === null) return { ok: true, ...made, notes: [] };
    const { legacy, standard, unclear } = kinds;
    if (configOf(options.files) === null && legacy.length > 0) {
      return standard.length > 0 ? { ok: false, faults: [mixed(kinds)], crashed: null } : this.build(text, { ...options, legacyDecorators: true }, signal);
    }
    const doubtful = [...legacy, ...(standard.length > 0 ? [] : unclear)];
    if (doubtful.length === 0) return { ok: true, ...made, notes: [] };
    return { ok: true, ...made, notes: [{ code: 'standard_decorators', message: byStandard(doubtful) }] };
  }

  /** End esbuild, so that user code finds no process of esbuild. */
  end() {
    this.#ended = true;
    this.#esbuild?.end();
    this.#esbuild = null;
  }

  /** @param {string} text @param {Options} options @param {AbortSignal} signal @param {string} [folder] folder of the files */
  #run(text, options, signal, folder) {
    if (!this.#esbuild?.lives) this.#esbuild = new Esbuild(this.program, this.memoryMb);
    return this.#esbuild.build({
      flags: flagsOf(options), folder: folder ?? options.packages ?? '/', ...(options.files ? { text: null, file: options.files.path } : { text, file: null }),
    }, signal);
  }

  /**
   * Build an evaluator that has several files. They are written to a separate folder, which is removed before any user
   * code runs. Packages are found through a link, whose name keeps their paths the same as without files.
   *
   * @param {string} text
   * @param {Options} options
   * @param {Files} files
   * @param {AbortSignal} signal
   */
  async #runAmongFiles(text, options, files, signal) {
    const folder = fs.mkdtempSync(join(tmpdir(), 'build-'));
    try {
      for (const [path, content] of [...Object.entries(files.texts), [files.path, text]]) {
        fs.mkdirSync(join(folder, dirname(path)), { recursive: true });
        fs.writeFileSync(join(folder, path), content);
      }
      if (options.packages !== null) fs.symlinkSync(join(options.packages, 'node_modules'), join(folder, 'node_modules'));
      return await this.#run(text, options, signal, folder);
    } finally {
      fs.rmSync(folder, { recursive: true, force: true });
    }
  }
}

/**
 * Bundle a file of a package that a row requires while it runs, and wait for the result.
 *
 * @param {string} file
 * @param {{esbuild: string, packages: string, memoryMb: number}} tools
 * @returns {string} a CommonJS module
 * @throws {Error} with esbuild's message
 */
export function buildFile(file, { esbuild, packages, memoryMb }) {
  const { spawnSync } = process.getBuiltinModule('node:child_process');
  const { status, stdout, stderr, error } = spawnSync(esbuild, [file, ...COMMON, '--log-level=error', '--format=cjs'], {
    cwd: packages, env: environmentOf(memoryMb), maxBuffer: OUTPUT_BYTES, encoding: 'utf8',
  });
  if (status === 0) return makeModulesCallable(withModulePaths(stdout, packages));
  throw new Error(/^(?:✘|X) \[ERROR\] (.*)$/m.exec(stderr ?? '')?.[1] ?? error?.message ?? `esbuild ended with ${status}`);
}

/** Addons, WebAssembly and data of packages stay separate files; the evaluator's `require` opens them. If data were bundled as code, esbuild would need thirty times its size. */
const COMMON = [
  '--bundle', '--platform=node', '--target=node24', '--charset=utf8', '--color=false', '--log-limit=0',
  '--supported:dynamic-import=false', '--main-fields=main,module', '--external:./node_modules/*.node', '--external:./node_modules/*.wasm',
  '--external:./node_modules/*.json',
  ...builtinModules.filter((one) => one.includes('/')).map((one) => `--external:${one}`), // esbuild does not know `inspector/promises`
  ...DEFINED,
];

/** Matches a specifier in Deno's form; its groups are the package and a path in the package. */
export const NPM = /^npm:\/?((?:@[\w.~-]+\/)?[\w.~-]+)(?:@[\w.~+-]+)?((?:\/[\w.~/-]+)?)$/;

/** Suffixes of files that are imported as strings. */
const TEXTS = ['txt', 'md', 'csv', 'tsv', 'yaml', 'yml', 'html', 'xml', 'sql', 'jsonl', 'prompt', 'jinja', 'j2', 'tmpl'].map((end) => `--loader:.${end}=text`);

/** Code whose build uses the parts of esbuild that most evaluators need. */
const SMALL = 'interface Small { some?: number }\nexport function evaluate(inputs: any, { some }: Small = {}): number { return `${inputs?.x}` === "" ? some! : 1 }\n';

/** @param {Options} options */
function flagsOf({ language, isAsync, legacyDecorators, unmapped, files, external, aliases }) {
  const loader = language === 'typescript' ? 'ts' : 'js';
  const compilerOptions = legacyDecorators ? { experimentalDecorators: true, useDefineForClassFields: false } : {};
  const input = files ? ['--preserve-symlinks', ...TEXTS] : [`--loader=${loader}`, `--sourcefile=${fileName(language)}`];
  return [
    ...COMMON, '--log-level=silent', ...(external ?? []).map((one) => `--external:${one}`), ...(aliases ?? []).map((one) => `--alias:${one}=${one.replace(NPM, '$1$2')}`), `--format=${isAsync ? 'esm' : 'cjs'}`, ...input,
    ...(unmapped ? [] : ['--sourcemap=inline', '--sources-content=false']), ...(configOf(files) === null ? [`--tsconfig-raw=${JSON.stringify({ compilerOptions })}`] : []),
  ];
}

const LEGACY_CONFIG = 'send `files`: {"tsconfig.json": "{\\"compilerOptions\\": {\\"experimentalDecorators\\": true}}"}';

/** @param {import('./decorators.mjs').Kinds} kinds @returns {Fault} */
function mixed({ legacy, standard }) {
  return {
    message: `the code has decorators of two kinds: ${some(legacy)} for TypeScript's own rules (experimentalDecorators), ${some(standard)} for those of the standard`,
    hint: `if all were written for TypeScript's own rules, ${LEGACY_CONFIG}; otherwise, write all for the standard, which calls them with (value, context)`, module: null, line: null, column: null, file: null,
  };
}

/** @param {string[]} names */
function byStandard(names) {
  return `${some(names)} ran by the rules of standard decorators, (value, context), but may have been written for TypeScript's own rules (experimentalDecorators)`;
}

const WITHOUT_METADATA = 'tsconfig.json sets emitDecoratorMetadata, which the compiler here (esbuild) does not do: Reflect.getMetadata("design:type", …) is undefined';

/** @param {string[]} names */
function some(names) {
  return names.length > 5 ? `${names.slice(0, 5).join(', ')} …` : names.join(', ');
}

/** Return the name by which tracebacks show the user's code. @param {string} language */
export function fileName(language) {
  return language === 'typescript' ? 'evaluator.ts' : 'evaluator.js';
}

/** Return the text and the source map in an output of esbuild. @param {string} output @param {Options} options */
function split(output, { isAsync, packages, unmapped, files }) {
  const map = MAP.exec(output);
  const text = withModulePaths(map ? output.slice(0, map.index) : output, packages, files ? [...Object.keys(files.texts), files.path] : []);
  const callable = makeModulesCallable(text);
  const script = isAsync ? asFunctionBody(callable) : callable;
  if (unmapped) return { text: script, map: NO_PLACES };
  return { text: script, map: map ? Buffer.from(map[1], 'base64').toString('utf8') : '' };
}

/**
 * Replace esbuild's `__toESM`: `import * as _ from "lodash"` has to be callable if the module is, and
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
    .replace(/^import (?:([\w$]+)(?:, )?)?(?:\* as ([\w$]+)|\{ (.*) \})? from ("[^"\n]+")(?: with \{ type: "json" \})?;$/gm, (_, only, all, some, module) => {
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

/** The replacement for `__toESM`: it wraps a function in a proxy that adds `default`, and copies any other value, as esbuild does. */
const CALLABLE = `(mod, isNodeMode, target) => {
 const own = (key) => Object.prototype.hasOwnProperty.call(mod, key);
 if (typeof mod === "function" && !mod.__esModule) return new Proxy(mod, {
  get: (from, key) => (key === "default" && !own(key) ? from : Reflect.get(from, key)),
  has: (from, key) => key === "default" || Reflect.has(from, key) });
 target = mod != null ? Object.create(Object.getPrototypeOf(Object(mod))) : {};
 if (isNodeMode || !mod || !mod.__esModule || !("default" in mod)) Object.defineProperty(target, "default", { value: mod, enumerable: true });
 if (typeof mod === "object" || typeof mod === "function") for (const key of Object.getOwnPropertyNames(Object(mod))) {
  if (Object.prototype.hasOwnProperty.call(target, key)) continue;
  const found = Object.getOwnPropertyDescriptor(mod, key);
  Object.defineProperty(target, key, { get: () => mod[key], enumerable: !found || found.enumerable });
 }
 return target; }`.replace(/\n\s*/g, ' ');

/** @param {import('./esbuild.mjs').Message[]} errors @param {string} [own] path of the evaluator's code @returns {Fault[]} */
export function faultsOf(errors, own) {
  return errors.map(({ text, location: place }) => {
    const isOwn = place !== null && (own === undefined ? /^evaluator\.[jt]s$/.test(place.file) : place.file === own);
    const [, found, written] = /^Could not resolve "(.*?)"(?: \(originally "(.*)"\))?$/.exec(text) ?? [];
    return {
      message: place && !isOwn && own !== undefined ? `${text} (${place.file}:${place.line})` : text,
      module: written ?? found ?? null,
      line: place?.line ?? null,
      column: isOwn ? characterColumn(place.lineText, place.column) : null,
      file: place && !isOwn ? place.file : null,
    };
  });
}

/** Convert a column of esbuild (in bytes, from 0) to a column in characters, from 1. @param {string} line @param {number} bytes */
function characterColumn(line, bytes) {
  return Buffer.from(line).toString('utf8', 0, bytes).length + 1;
}

/** @param {string} name name of a module @returns {boolean} */
export function isBuiltin(name) {
  return name.startsWith('node:') || builtinModules.includes(name);
}
