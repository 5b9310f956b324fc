// @ts-check
/**
 * Imports the dialects in this folder, in the order of their files' names. `toolchain/build.mjs` puts a list of imports in place of this
 * file, because a bundled program has no folder to read.
 */
import { readdirSync } from 'node:fs';

const HELPERS = ['found.mjs', 'steps.mjs', 'table.mjs'];

/** Return the files of the dialects in a folder. @param {string} folder */
export function filesOf(folder) {
  return readdirSync(folder).filter((name) => name.endsWith('.mjs') && !HELPERS.includes(name)).sort();
}

const modules = await Promise.all(filesOf(import.meta.dirname).map((name) => import(`./${name}`)));

/** @type {import('./table.mjs').Dialect[]} */
export const found = modules.map((one) => one.dialect);
