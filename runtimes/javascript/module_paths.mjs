// @ts-check
/**
 * Gives each file of a bundle its own path: a package that reads its files by `__dirname` or `import.meta.url` needs its
 * own folder, not the evaluator's.
 *
 * esbuild replaces each of these names by a placeholder (`DEFINED`), and writes the path of every file above its code.
 */
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';

const OWN = '/evaluator.js';
const WORD = '__evaluator_host_place_';
const PLACE = new RegExp(String.raw`^ *// (?:(node_modules/.+)|evaluator\.[jt]s)$|${WORD}(meta|dirname|filename)__`, 'gm');

/** Arguments that make esbuild write the placeholders. */
export const DEFINED = [`--define:import.meta=${WORD}meta__`, `--define:__dirname=${WORD}dirname__`, `--define:__filename=${WORD}filename__`];

/**
 * Return the text with paths for the placeholders; line numbers do not change.
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
