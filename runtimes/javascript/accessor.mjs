// @ts-check
/**
 * The line that is put after the user's code, in its own scope, to report its functions: a `const evaluate = …` can be
 * seen from nowhere else.
 */

/** @param {string[]} names */
export function withAccessor(/** @type {string} */ text, names) {
  const entries = names.map((name) => `${name}: typeof ${name} === "undefined" ? void 0 : ${name}`);
  return `${text}\n;__evaluator_host_entries__({${entries.join(', ')}});`;
}
