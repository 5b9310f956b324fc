// @ts-check
/**
 * Where each file of a bundle lies: a package that reads its own files by `__dirname` or `import.meta.url` has to be told
 * its own folder, not the evaluator's.
 *
 * esbuild is made to put a word for each of these names (`DEFINED`), and writes the path of every file above its code.
 */
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';

const OWN = '/evaluator.js';
const WORD = '__evaluator_host_place_';
const PLACE = new RegExp(String.raw`^ *// (?:(node_modules/.+)|evaluator\.[jt]s)$|${WORD}(meta|dirname|filename)__`, 'gm');

/** Arguments for esbuild. */
export const DEFINED = [`--define:import.meta=${WORD}meta__`, `--define:__dirname=${WORD}dirname__`, `--define:__filename=${WORD}filename__`];

/**
 * Replace the words; lines keep their places.
 *
 * @param {string} text as esbuild wrote it
 * @param {string | null} root folder that holds `node_modules`
 */
export function withModulePaths(text, root) {
  if (!text.includes(WORD)) return text;
  let file = OWN;
  return text.replace(PLACE, (whole, /** @type {string | undefined} */ inPackage, /** @type {string | undefined} */ name) => {
    if (name !== undefined) return nameOf(file, name);
    file = inPackage === undefined || root === null ? OWN : `${root}/${inPackage}`;
    return whole;
  });
}

/** @param {string} file @param {string} name */
function nameOf(file, name) {
  switch (name) {
    case 'filename': return JSON.stringify(file);
    case 'dirname': return JSON.stringify(dirname(file));
    default: return `({ url: ${JSON.stringify(pathToFileURL(file).href)}, filename: ${JSON.stringify(file)}, dirname: ${JSON.stringify(dirname(file))} })`;
  }
}
