// @ts-check
/**
 * Dialect `script`: the code is a program that runs from its first line to its last for each row.
 *
 * A program without `import` and `export` becomes the body of a function, so that it sees arguments and variables of the
 * environment, may use `await`, and ends when its timers have. A module runs while it is loaded, which is per row too.
 */
const NAME = 'evaluatorHostScript';
const MODULE = /^\s*(?:import\s*[\w{*"']|export\s+(?:default|const|let|var|async|function|class|\{|\*))/m;
/** On the first line of the program, so that it keeps its line numbers. */
const HEAD = `async function ${NAME}(row) { const ${NAME}Ends = (${String(started).replace(/\s*\n\s*/g, ' ')})(row); `;
const TAIL = `\nawait ${NAME}Ends(); return { exit_code: Number(process.exitCode ?? 0) }; }`;

/** @type {import('./table.mjs').Dialect} */
export const dialect = {
  contract: 'script',
  entries: [NAME],
  takesOneObject: false,
  infer: () => null,
  declaredOnly: true,
  source(code) {
    return MODULE.test(code) ? `${code}\n${HEAD}${TAIL}` : `${HEAD}${code}${TAIL}`;
  },
};

/** Prepare a program's surroundings, and return what waits for its timers; works inside a context, so it uses nothing of this file. @param {any} row */
function started(row) {
  Object.assign(process.env, row.env ?? {});
  process.argv.push(...(row.argv ?? []));
  const pending = new Set();
  const { setTimeout: start, clearTimeout: stop } = globalThis;
  /** @type {any} */ (globalThis).setTimeout = (/** @type {any} */ callback, /** @type {any} */ delay, /** @type {any[]} */ ...parts) => {
    const timer = start(() => { pending.delete(timer); callback(...parts); }, delay);
    pending.add(timer);
    return timer;
  };
  /** @type {any} */ (globalThis).clearTimeout = (/** @type {any} */ timer) => { pending.delete(timer); stop(timer); };
  return async () => {
    for (let quiet = 0; quiet < 20; quiet = pending.size ? 0 : quiet + 1) await new Promise((done) => { start(done, pending.size ? 2 : 0); });
  };
}
