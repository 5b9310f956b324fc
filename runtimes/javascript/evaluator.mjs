// @ts-check
/** Loads the evaluator of this runner once, and passes later calls to its rows. */
import { foreignRuntime, needs, packageOf, withoutPlaceholders } from './absent.mjs';
import { exitFailure, crashFailure, memoryFailure, pinHint, shapeLogs, shapeMs, timeoutFailure } from './answers.mjs';
import { findEntry } from './entry.mjs';
import { factsOf } from './facts.mjs';
import { readParser } from './parser.mjs';
import { failure, thrownFailure } from './positions.mjs';
import { Relay } from './relay.mjs';
import { Rows } from './rows.mjs';
import { WorkerPair } from './worker_pair.mjs';

/**
 * @typedef {import('./loader.mjs').Loadable} Loadable
 * @typedef {import('./positions.mjs').Failure} Failure
 * @typedef {{failure: Failure, missing: any[], logs: any}} Refused
 */

/** Import the bundler late, because it needs child_process and start-up has to be short. */
const loadLoader = () => import('./loader.mjs');

/** A small program that loads in the same way as most evaluators. */
const SMALL = 'function evaluate(inputs, outputs, trace) { return outputs === inputs.text ? 1 : 0 }';
const WATCH_MS = 25;

export class Evaluator {
  #loading = false;
  #loadId = '';
  #abort = new AbortController();
  #cancelled = false;
  /** @type {Rows | null} */
  #rows = null;
  /** @type {Relay | null} */
  #relay = null;

  /**
   * @param {import('./channel.mjs').Channel} channel
   * @param {import('./workers.mjs').Surroundings} surroundings
   * @param {{esbuild: string | null, packages: string | null, memoryMb: number}} tools
   */
  constructor(channel, surroundings, tools) {
    this.channel = channel;
    this.tools = tools;
    this.workers = new WorkerPair(surroundings);
  }

  /** Do the work that every load needs, before the load arrives. */
  async getReady() {
    if (this.#loading) return;
    const { prepare, startAhead } = await loadLoader();
    const { esbuild, packages, memoryMb } = this.tools;
    if (this.#loading) return;
    if (esbuild !== null) startAhead({ esbuild, packages, memoryMb });
    const order = { language: 'javascript', contract: 'auto', entry: null, check: false };
    const small = /** @type {Loadable} */ (await prepare({ code: SMALL, bundle: null }, order, this.tools, this.#abort.signal));
    findEntry([{ where: 'declared', name: 'evaluate', kind: 'function', text: SMALL, length: 3, ownName: 'evaluate', methods: [] }], { ...order, code: SMALL });
    factsOf([{ name: 'evaluate', text: SMALL }], SMALL, () => null);
    if (!this.#loading) this.workers.warm(small.program);
  }

  /** @param {{header: any, body: Buffer}[]} frames */
  take(frames) {
    for (const { header, body } of frames) {
      switch (header.type) {
        case 'load':
          void this.#load(header, JSON.parse(body.toString('utf8')));
          break;
        case 'call':
          if (this.#rows === null) throw new Error('a row came before the evaluator was loaded');
          this.#rows.add(header, body);
          break;
        case 'bytes':
          this.#relay?.take(header, body);
          break;
        case 'cancel':
          if (header.id === this.#loadId) this.#cancelLoad();
          else this.#rows?.cancel(header.id);
          break;
        default: throw new Error(`unknown frame ${header.type}`);
      }
    }
    this.#rows?.dispatch();
  }

  /** @param {any} header @param {{code: string, bundle: unknown}} body */
  async #load(header, body) {
    if (this.#loading) throw new Error('second load');
    this.#loading = true;
    this.#loadId = header.id;
    const started = performance.now();
    if (header.environment) header.environment = await this.#openRelay(header.environment);
    const answer = await this.#attempt(header, body);
    this.#relay?.endRow();
    const common = { id: header.id, load_ms: shapeMs(performance.now() - started), logs: shapeLogs(answer.logs) };
    if ('failure' in answer) {
      this.channel.send({ type: 'load_failed', ...common }, JSON.stringify({ error: answer.failure, missing_imports: answer.missing }));
      return;
    }
    const { found, loadable } = answer;
    const { source } = loadable.program;
    const facts = factsOf(found.functions, withoutPlaceholders(loadable.positions.own(source)), (text) => loadable.positions.start(source, text)?.line ?? null);
    this.#rows = new Rows(this.channel, this.workers, { positions: loadable.positions, resultKb: header.limits.result_kb, perRow: loadable.program.perRow }, this.#relay);
    this.workers.select(found.selector);
    if (answer.spoiled) {
      this.workers.abandon();
      this.workers.replace();
    }
    this.channel.send({
      type: 'loaded', contract: found.contract, contract_source: found.source, reason: found.reason, entry: found.entry,
      parameters: found.parameters, notes: [...(found.notes ?? []), ...loadable.notes], ...common,
    }, JSON.stringify({ missing_imports: loadable.missing, bundle: loadable.bundle, ...facts, ...(loadable.absent?.length ? { not_loaded: loadable.absent } : {}) }));
  }

  /** @param {any} header @param {any} body @returns {Promise<Refused | {found: import('./contracts.mjs').Found, loadable: Loadable, logs: any, spoiled: boolean}>} */
  async #attempt(header, body) {
    const abort = this.#abort;
    const timeoutMs = header.timeout_s * 1000;
    const clock = setTimeout(() => abort.abort(), timeoutMs);
    try {
      const { prepare, compile, dismissAhead, filesOf } = await loadLoader();
      const known = body.known ?? {};
      readParser();
      let loadable = await prepare(body, header, this.tools, abort.signal);
      dismissAhead();
      if ('failure' in loadable) return { ...loadable, logs: null };
      const data = header.data_files ? body.files : null;
      let offered = await this.#inspect(loadable, header, data, abort.signal);
      const lacks = offered.type === 'load_failed' && offered.missing?.length > 0 && offered.missing.every((/** @type {{module: string}} */ one) => packageOf(one.module, known) !== null);
      if (offered.type === 'load_failed' && (offered.code === 'syntax_error' || lacks) && loadable.bundle === null && this.tools.esbuild !== null) {
        const { positions, program } = loadable;
        const again = await compile(program.source, program.wanted, positions, header, { ...this.tools, known, files: filesOf(body, header) }, abort.signal);
        if ('failure' in again) return { ...again, logs: null };
        loadable = again;
        offered = await this.#inspect(loadable, header, data, abort.signal);
      }
      const answer = this.#judge(offered, loadable, header, body.code);
      const refused = loadable.refused ? { ...loadable.refused, logs: answer.logs } : null;
      if ('failure' in answer) {
        const failed = refused ?? answer;
        if (['entry_not_found', 'binding_error'].includes(answer.failure.code)) return await this.#held(failed, header, body, data);
        return failed;
      }
      const whole = withoutAbsent(answer, loadable, header.check) ?? /** @type {Refused} */ (refused);
      return 'found' in whole ? { ...whole, found: { ...whole.found, notes: [...(whole.found.notes ?? []), ...foreignNotes(whole)] } } : whole;
    } catch (error) {
      if (/** @type {any} */ (error)?.name !== 'AbortError') throw error;
      const late = this.#cancelled ? failure('cancelled', 'the load was cancelled') : timeoutFailure(timeoutMs, 'loading the code');
      return { failure: late, missing: [], logs: this.workers.abandon() };
    } finally {
      clearTimeout(clock);
    }
  }

  /** Look for an evaluator inside the code (in a string or a factory), if the code has no entry of its own. @param {Refused} refused @param {any} header @param {any} body @param {Record<string, string> | null} data */
  async #held(refused, header, body, data) {
    const { findHeld } = await import('./held.mjs');
    const { prepare } = await loadLoader();
    const held = findHeld(body.code);
    if (held === null) return refused;
    const loadable = await prepare({ ...body, code: held.code, bundle: null }, { ...header, held: true }, this.tools, this.#abort.signal);
    if ('failure' in loadable) return refused;
    const answer = this.#judge(await this.#inspect(loadable, header, data, this.#abort.signal), loadable, header, held.code);
    const whole = 'failure' in answer ? null : withoutAbsent(answer, loadable, header.check);
    if (whole === null) return refused;
    return { ...whole, found: { ...whole.found, notes: [{ code: 'entry_found_inside', message: held.note }, ...(whole.found.notes ?? [])] } };
  }

  /** Open the port for connections to the host. @param {Record<string, string>} environment @returns {Promise<Record<string, string>>} with its address */
  async #openRelay(environment) {
    this.#relay = new Relay(this.channel, () => this.#rows === null || this.#rows.runsOne);
    const address = await this.#relay.listen();
    return Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, value.replace('{address}', address)]));
  }

  #cancelLoad() {
    this.#cancelled = true;
    this.#abort.abort();
  }

  /** @param {any} offered @param {Loadable} loadable @param {any} header @param {string} code */
  #judge(offered, loadable, header, code) {
    const { logs } = offered;
    const { positions } = loadable;
    const missing = [...loadable.missing, ...positions.missingImports(offered.missing)];
    switch (offered.type) {
      case 'lost': return { failure: this.#lossFailure(offered), missing, logs };
      case 'load_failed': {
        const refused = offered.code === 'timeout'
          ? failure('timeout', 'the module awaits a promise that can never settle')
          : thrownFailure(offered.code, offered.thrown, positions);
        return { failure: atLoad({ ...refused, hint: refused.hint ?? decoratorHint(loadable.notes) }), missing, logs };
      }
      default: {
        const { source } = loadable.program;
        const built = new Map();
        const written = (/** @type {{text: string}} */ one) => {
          const text = positions.asWritten(source, one.text);
          built.set(text, one.text);
          return { ...one, text };
        };
        const offeredHere = offers(offered.offers).map((one) => ({ ...written(one), methods: one.methods.map(written) }));
        const lines = code.split('\n').length;
        const lineOf = (/** @type {string} */ text) => {
          const line = positions.start(source, built.get(text) ?? text)?.line ?? null;
          return line !== null && line <= lines ? line : null; // the lines after the user's code contain the stand-ins
        };
        const found = findEntry(offeredHere, { contract: header.contract, entry: header.entry, code, language: header.language, source, lineOf });
        if (!('code' in found)) {
          const functions = found.functions.map((one) => ({ ...one, text: built.get(one.text) ?? one.text, written: one.text }));
          return { found: { ...found, functions }, loadable: { ...loadable, missing }, logs, spoiled: offered.spoiled };
        }
        return { failure: failure(found.code, found.message, { hint: found.hint }), missing, logs };
      }
    }
  }

  /** @param {{reason: string, detail: string}} loss @returns {Failure} */
  #lossFailure({ reason, detail }) {
    if (reason === 'memory') return memoryFailure(this.workers.memoryMb);
    return reason === 'exit' ? exitFailure(Number(detail), 'load_error') : crashFailure(detail);
  }

  /** Run the module once and return what it offers. @param {Loadable} loadable @param {any} header @param {Record<string, string> | null} data @param {AbortSignal} signal @returns {Promise<any>} */
  #inspect(loadable, header, data, signal) {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      const lose = (/** @type {string} */ reason, detail = '') => resolve({ type: 'lost', reason, detail, logs: this.workers.abandon() });
      this.workers.onLost = lose;
      const watch = setInterval(() => this.workers.isOverMemory() && lose('memory'), WATCH_MS);
      signal.addEventListener('abort', () => clearInterval(watch), { once: true });
      this.workers.onLoading = (message) => {
        clearInterval(watch);
        resolve(message);
      };
      const { limits } = header;
      const environment = header.environment || header.secrets ? { ...header.environment, ...header.secrets } : null;
      this.workers.load({ program: loadable.program, data, environment, selector: null, logKb: limits.log_kb, resultKb: limits.result_kb }, limits.memory_mb);
    });
  }
}

/** Return a warning if an evaluator uses another runtime's global, because code that catches the error may score without it. @param {{found: import('./contracts.mjs').Found, loadable: Loadable}} answer */
function foreignNotes({ found, loadable }) {
  const names = found.selector.every?.map((one) => one.name) ?? [found.entry];
  const runtime = names.map((name) => foreignRuntime(loadable.program.source, name)).find((one) => one !== null);
  return runtime ? [{ code: 'missing_import', message: `the code uses ${runtime}, which Node.js does not have; if it catches the error, the score is what it returns without ${runtime}` }] : [];
}

/**
 * Return an answer without the evaluators that need missing modules (for which there are placeholders); null if no evaluator is left.
 *
 * @template {{found: import('./contracts.mjs').Found, loadable: Loadable}} T @param {T} answer @param {Loadable} loadable @param {boolean} calls whether missing files count even if the code uses them only when it is called @returns {T | null}
 */
function withoutAbsent(answer, { program, refused }, calls) {
  if (!refused) return answer;
  const left = without(answer.found, refused, ({ name, selector }) => needs(program.source, name, selector.where === 'listed' ? Number(selector.name) : null, calls));
  if (left === null) return null;
  // If no evaluator was left out, none needs a missing well-known package. Missing unknown packages are reported all the same: a call that uses one
  // would fail, and their names may be misspelt.
  const missing = left === answer.found ? refused.missing.filter((one) => refused.unknown?.includes(one.module)) : refused.missing;
  return { ...answer, found: left, loadable: { ...answer.loadable, missing: [...answer.loadable.missing, ...missing] } };
}

/**
 * Return an entry without the evaluators that need missing modules; null if none is left.
 *
 * @param {import('./contracts.mjs').Found} found @param {{failure: Failure}} refused @param {(one: {name: string, selector: import('./contracts.mjs').Selector}) => boolean} stops
 * @returns {import('./contracts.mjs').Found | null}
 */
function without(found, { failure: { message } }, stops) {
  const { every } = found.selector;
  if (every === undefined) return stops({ name: found.entry, selector: found.selector }) ? null : found;
  const stopped = every.map(stops);
  const isFirst = every.some((one) => one.uses === undefined) ? (/** @type {number} */ at) => every[at].uses === undefined : () => true;
  if (stopped.every((one, at) => one || !isFirst(at))) return null;
  if (!stopped.includes(true)) return found;
  const notes = every.filter((_, at) => stopped[at] && isFirst(at)).map(({ name }) => ({ code: 'entry_left_out', message: `${name} is not called: ${message}` }));
  return {
    ...found, selector: { ...found.selector, every: every.filter((_, at) => !stopped[at]) }, parameters: found.parameters.filter((_, at) => !stopped[at]),
    functions: found.functions.filter((_, at) => !stopped[at]), notes: [...(found.notes ?? []).filter((one) => notes.length === 0 || one.code !== 'several_entries'), ...notes],
  };
}

/** @param {string} text JSON that user code may have changed @returns {import('./offers.mjs').Offer[]} */
function offers(text) {
  try {
    const list = JSON.parse(text);
    return Array.isArray(list) ? list : [];
  } catch {
    return [];
  }
}

/** Return advice on code that does not load, if its decorators may be the cause. @param {import('./loader.mjs').Note[]} notes */
function decoratorHint(notes) {
  const doubt = notes.find((one) => one.code === 'standard_decorators');
  return doubt === undefined ? null : `${doubt.message}: if so, send \`files\` with a tsconfig.json that sets experimentalDecorators`;
}

/** @param {Failure} raised @returns {Failure} */
function atLoad(raised) {
  const error = raised.code === 'user_exception' ? { ...raised, code: 'load_error' } : raised;
  const name = /^Cannot find module '([^'./][^']*)'/.exec(error.message)?.[1];
  return name === undefined ? error : { ...error, hint: pinHint(name) };
}
