// @ts-check
/**
 * The table of dialects: each file beside this one that exports `dialect`.
 *
 * @typedef {object} Dialect
 * @property {string} contract its name in the protocol
 * @property {string[]} entries the names by which its function is looked for
 * @property {boolean} takesOneObject whether the function takes its arguments as properties of one object
 * @property {boolean} [byName] whether the properties of the row's one object are passed by the parameters' names
 * @property {(candidate: import('../offers.mjs').Candidate) => string[] | null} [readsOfWhole] returns the properties that a function needs if it takes the row's object
 *   itself, and not properties of it; null for any other function
 * @property {(names: string[]) => string | undefined} [outputOf] returns which of these parameters gets the output; all are passed by name
 * @property {boolean} [takesDefault] whether an anonymous default export may be its function
 * @property {RegExp} [takesAnyName] in code that matches, functions of any name may be of this dialect
 * @property {(candidate: import('../offers.mjs').Candidate, name: string, code: string, isListed?: boolean, isDeclared?: boolean) => Inferred | import('../contracts.mjs').Refusal | null} infer
 *   returns why the entry, found under `name`, is of this dialect; null when it is not. `isListed`: the code has it in a list of evaluators, which take properties of the row
 * @property {(code: string, isDeclared: boolean) => string | null} [source] returns the code to run in place of what was
 *   pasted, on the same lines; null when it is run as it is. `isDeclared`: the contract is declared, and no entry is named
 * @property {(code: string) => {name: string, text: string}[]} [listed] returns the evaluators that the code gives its platform; the name is empty for a value that cannot be called
 * @property {boolean} [isProgram] whether the code itself is run for each row, without a call; only if the contract is declared
 * @property {(code: string, language: string) => import('../contracts.mjs').Refusal | null} [refuse] returns why its platform
 *   does not run this source
 *
 * @typedef {{step: number, reason: string, byColumn?: boolean}} Inferred `step`: see `steps.mjs`; `byColumn`: a single parameter is a property of the row
 */
import { found } from './found.mjs';

/** This product's own contracts, which are tried after all others. */
const OWN = ['function', 'evaluate-v1', 'evaluate', 'main', 'script'];

/** @type {Dialect[]} in the order in which they are tried: others by name, then the product's own */
export const DIALECTS = found.sort((one, other) => OWN.indexOf(one.contract) - OWN.indexOf(other.contract));
