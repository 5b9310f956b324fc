// @ts-check
/**
 * Dialect `script`: the code is a program that runs from its first line to its last for each row, and not at load. It gets
 * the row's arguments, environment and standard input as any program does, and ends when it waits for nothing more.
 */

/** @type {import('./table.mjs').Dialect} */
export const dialect = {
  contract: 'script',
  entries: [],
  takesOneObject: false,
  infer: () => null,
  isProgram: true,
};
