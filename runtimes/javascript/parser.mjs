// @ts-check
/** The JavaScript parser: acorn, which comes with Node. `build.mjs` writes a copy of the parser beside the runner, which reads it on first use. */
import boot from './boot/compiled.cjs';

/** @type {{parse: (text: string, options: object) => any} | null} */
let acorn = null;

/** Read the parser. Do this before a worker loads user code: the worker then changes V8's flags, and V8 refuses the parser's compiled code. */
export function readParser() {
  acorn ??= start();
}

/** Return the syntax tree of a program, or null if the text is not a program. @param {string} text @param {'script' | 'module'} [sourceType] */
export function parse(text, sourceType = 'script') {
  acorn ??= start();
  try {
    return acorn.parse(text, { ecmaVersion: 'latest', sourceType, allowAwaitOutsideFunction: true, allowSuperOutsideMethod: true });
  } catch {
    return null;
  }
}

function start() {
  const module = { exports: /** @type {any} */ ({}) };
  boot.compiled('parser').runInThisContext()(module.exports, module);
  return module.exports;
}
