// @ts-check
/**
 * Gives each file of a bundle its own path, because a package that finds its files by `__dirname`, `import.meta.url` or
 * `require.resolve` needs its own folder, not the evaluator's.
 *
 * esbuild replaces each of these names with a placeholder (`DEFINED`), and writes the path of every file above its
 * code.
 */
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';

const OWN = '/evaluator.js';
const WORD = '__evaluator_host_place_';
const PLACE = new RegExp(String.raw`^ *// (?:(node_modules/.+)|(evaluator\.[jt]s)|(\S.*))$|${WORD}(meta|dirname|filename|resolve)__`, 'gm');

/** Arguments that make esbuild write the placeholders. */
export const DEFINED = [`--define:import.meta=${WORD}meta__`, `--define:__dirname=${WORD}dirname__`, `--define:__filename=${WORD}filename__`, `--define:require.resolve=${WORD}resolve__`];

/**
 * Return the text with paths in place of the placeholders; line numbers do not change.
 *
 * @param {string} text esbuild's output
 * @param {string | null} root folder that holds `node_modules`
 * @param {string[]} files paths of the evaluator's files, if it has several; rows find them in their working directory
 */
export function withModulePaths(text, root, files = []) {
  if (!text.includes(WORD)) return text;
  const own = new Set(files);
  let file = OWN;
  /** @param {string} whole @param {(string | undefined)[]} found */
  const replace = (whole, ...[inPackage, evaluator, other, name]) => {
    if (name !== undefined) return nameOf(file, name);
    if (inPackage !== undefined) file = root === null ? OWN : `${root}/${inPackage}`;
    else if (own.has(evaluator ?? other ?? '')) file = `${process.cwd()}/${evaluator ?? other}`;
    else if (evaluator !== undefined) file = OWN;
    return whole;
  };
  return text.replace(PLACE, replace);
}

/** @param {string} file @param {string} name */
function nameOf(file, name) {
  switch (name) {
    case 'filename': return JSON.stringify(file);
    case 'dirname': return JSON.stringify(dirname(file));
    case 'resolve': return `require("node:module").createRequire(${JSON.stringify(file)}).resolve`;
    default: return `({ url: ${JSON.stringify(pathToFileURL(file).href)}, filename: ${JSON.stringify(file)}, dirname: ${JSON.stringify(dirname(file))} })`;
  }
}
