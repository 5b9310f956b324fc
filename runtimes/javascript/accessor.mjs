// @ts-check
/**
 * Appends a line to the user's code that reports the code's functions. The line has to be in the scope of the code,
 * because a `const evaluate = …` is visible only there.
 */

/** @param {string[]} names */
export function withAccessor(/** @type {string} */ text, names) {
  const entries = names.map((name) => `${name}: typeof ${name} === "undefined" ? void 0 : ${name}`);
  return `${text}\n;__evaluator_host_entries__({${entries.join(', ')}});`;
}
