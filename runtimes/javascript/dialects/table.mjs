// @ts-check
/**
 * The table of dialects, in the order in which they are tried. Each is a file or a folder beside this one and exports
 * `dialect`.
 *
 * @typedef {object} Dialect
 * @property {string} contract its name in the protocol
 * @property {string} entry the name by which its function is looked for
 * @property {boolean} takesOneObject whether the function takes its arguments as properties of one object
 * @property {(candidate: import('../entry.mjs').Candidate, name: string) => Inferred | import('../entry.mjs').Refusal | null} infer
 *   returns why the entry, found under `name`, is of this dialect; null when it is not
 *
 * @typedef {{reason: string}} Inferred
 */
import { dialect as evaluate } from './evaluate.mjs';
import { dialect as evaluateV1 } from './evaluate_v1.mjs';
import { dialect as main } from './main.mjs';

/** @type {Dialect[]} */
export const DIALECTS = [evaluateV1, evaluate, main];
