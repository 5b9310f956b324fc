// @ts-check
/**
 * Builds the files that a sandbox starts: each thread's modules as one file, with V8's compiled code, so that nothing
 * has to be resolved, parsed or compiled in the sandbox. Usage: `node build.mjs ESBUILD FOLDER`, which creates FOLDER (and, for a short time, another
 * folder beside it). The files in `boot/` read FOLDER.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { Script } from 'node:vm';
import { filesOf } from '../dialects/found.mjs';

const SOURCES = join(import.meta.dirname, '..');
const OPTIONS = [
  '--bundle', '--format=cjs', '--platform=node', '--target=node24', '--log-level=error', '--legal-comments=none',
  '--define:import.meta.dirname=__dirname',
  '--banner:js=(function (exports, require, module, __filename, __dirname) {', '--footer:js=})',
];
const GUEST = ['primordials', 'values', 'errors', 'globals', 'process', 'clone', 'timers', 'packages', 'rows'];

/** Copy the sources into a folder, with a list of imports in place of reading the dialects' folder. @param {string} folder */
function copySources(folder) {
  for (const one of readdirSync(SOURCES, { recursive: true, withFileTypes: true })) {
    const inner = relative(SOURCES, one.parentPath);
    if (!one.isFile() || inner.split(sep)[0] === 'node_modules') continue;
    mkdirSync(join(folder, inner), { recursive: true });
    // copy only the content, because the mode of the source file must not change the result
    writeFileSync(join(folder, inner, one.name), readFileSync(join(one.parentPath, one.name)));
  }
  const files = filesOf(join(folder, 'dialects'));
  const imports = files.map((name, at) => `import { dialect as d${at} } from './${name}';\n`);
  writeFileSync(join(folder, 'dialects', 'found.mjs'), `${imports.join('')}export const found = [${files.map((_, at) => `d${at}`)}];\n`);
}

/** @param {string} esbuild @param {string} cwd @param {string} entry @returns {string} one script in place of a module and all its imports */
function bundled(esbuild, cwd, entry) {
  const { status, stdout, stderr, error } = spawnSync(esbuild, [entry, ...OPTIONS], { cwd, encoding: 'utf8' });
  if (status !== 0) throw error ?? new Error(stderr);
  return stdout;
}

/** Return the scripts of a context as one script, which takes the bridge. */
function guest() {
  const [primordials, values, errors, globals, process, clone, timers, packages, rows] = GUEST.map(
    (name) => readFileSync(join(SOURCES, 'guest', `${name}.js`), 'utf8').replace(/^\/\*.*?\*\/\s*/s, '').trim(),
  );
  return `(function (bridge) { 'use strict';
const p = ${primordials}();
const values = ${values}(p, bridge);
const errors = ${errors}(p, bridge, values);
const globals = ${globals}(p, bridge,
  (own, fromNode) => ${process}(p, bridge)(own, fromNode),
  (dom) => ${clone}(p, bridge, dom),
  () => ${timers}(p, bridge),
  (own) => ${packages}(p, bridge, own));
const rows = ${rows}(p, bridge, values, errors, globals);
rows.install();
return rows; })`;
}

/** Return acorn, which Node has for its debugger, as a function of `exports` and `module`. */
function parser() {
  const text = /** @type {any} */ (process).binding('natives')['internal/deps/acorn/acorn/dist/acorn'];
  return `(function (exports, module) {${text}\n})`;
}

/** Write a script, and V8's compiled code for all its functions. @param {string} folder @param {string} name @param {string} text */
function write(folder, name, text) {
  // escaped, because V8 reads plain ASCII faster
  const source = text.replace(/[^\0-\x7f]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
  setFlagsFromString('--no-lazy'); // compiles every function, not only those that run at once
  const script = new Script(source, { filename: `runner:${name}` });
  setFlagsFromString('--lazy'); // set back, because V8 refuses code that was compiled with other flags
  writeFileSync(join(folder, `${name}.js`), source, 'latin1');
  writeFileSync(join(folder, `${name}.code`), script.createCachedData());
}

const [esbuild, folder] = process.argv.slice(2);
const sources = `${folder}.sources`;
mkdirSync(folder);
copySources(sources);
write(folder, 'runner', bundled(esbuild, sources, 'runner.mjs'));
write(folder, 'worker', bundled(esbuild, sources, 'worker/main.cjs'));
rmSync(sources, { recursive: true });
write(folder, 'guest', guest());
write(folder, 'parser', parser());
for (const name of ['compiled.cjs', 'runner.cjs', 'worker.cjs']) copyFileSync(join(SOURCES, 'boot', name), join(folder, name));
