// @ts-check
/**
 * Describes dialect `script`: the code is a program that runs for each row from its first line to its last, and not at load. It
 * gets the row's arguments, environment and standard input as any program does, and ends when it waits for nothing more.
 */

/** @type {import('./table.mjs').Dialect} */
export const dialect = {
  contract: 'script',
  entries: [],
  takesOneObject: false,
  infer: () => null,
  isProgram: true,
};
