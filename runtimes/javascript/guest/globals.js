/*
 * Makes the globals that Node adds to the language, for one context: console, timers, require, and parts of Node that
 * are handed out on first use. Where this is cheap, user code gets functions of its own realm; otherwise (Buffer, URL, crypto, modules), it gets
 * objects of the runner's realm.
 */
(function (p, bridge, makeProcess, makeClone, makeTimers, makePackages) {
  'use strict';
  const own = { __proto__: null };

  function defineLazy(name, make) {
    p.defineProperty(globalThis, name, {
      __proto__: null,
      configurable: true,
      enumerable: false,
      get() {
        const value = make(name);
        settle(name, value);
        return value;
      },
      set(value) {
        settle(name, value);
      },
    });
  }

  function settle(name, value) {
    p.defineProperty(globalThis, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
  }

  /** Make `instanceof` work for objects of Node's realm, which are not instances of this realm's classes. */
  function fromNode(value) {
    if (own.adopted) return value;
    own.adopted = true;
    const brands = ['Error', 'Promise', 'Uint8Array', 'ArrayBuffer', 'Map', 'Set', 'Date', 'RegExp', 'Array', 'Function', 'Object'];
    for (let i = 0; i < brands.length; i++) adopt(globalThis[brands[i]], brands[i]);
    return value;
  }

  function adopt(Class, brand) {
    if (typeof Class !== 'function') return;
    p.defineProperty(Class, Symbol.hasInstance, {
      __proto__: null,
      configurable: true,
      value: function (value) {
        return this === Class ? p.ordinaryInstance(Class, value) || bridge.isNodes(value, brand) : p.ordinaryInstance(this, value);
      },
    });
  }

  /** Return Node's own value of a name, or undefined if there is none. */
  function builtin(id) {
    const name = p.startsWith(id, 'node:') ? p.slice(id, 5) : id;
    switch (name) {
      case 'process': return globalThis.process;
      case 'console': return globalThis.console;
      case 'timers': return timersOf();
      case 'module': return moduleFacade();
      default: break;
    }
    const found = bridge.require(id);
    return found === undefined ? undefined : fromNode(found);
  }

  function moduleFacade() {
    own.module ??= {
      createRequire: (from) => packages().requireFrom(p.String(from)), builtinModules: p.parse(bridge.builtinModules),
      isBuiltin: (id) => bridge.isBuiltin('' + id),
    };
    return own.module;
  }

  function packages() {
    own.packages ??= makePackages({ __proto__: null, builtin, fromNode, complete });
    return own.packages;
  }

  function timersOf() {
    own.timers ??= makeTimers();
    return own.timers;
  }

  function makeConsole() {
    const made = {};
    const methods = p.parse(bridge.consoleMethods);
    for (let i = 0; i < methods.length; i++) {
      const method = methods[i];
      made[method] = { [method](...parts) { bridge.print(method, parts); } }[method];
    }
    made.Console = function Console() { return made; };
    return made;
  }

  function queueMicrotask(callback) {
    if (typeof callback !== 'function') throw new p.TypeError('The "callback" argument must be of type function');
    bridge.queueMicrotask(() => { callback(); });
  }

  /** Define the globals that the evaluator's own text does not name, because a module loaded later may use them. */
  function complete() {
    if (own.complete) return;
    own.complete = true;
    const names = p.parse(bridge.allNames);
    define(names, (name) => p.getOwnPropertyDescriptor(globalThis, name) === undefined);
  }

  /** @param module the module of the evaluator's code */
  function install(module) {
    const names = bridge.names;
    define(names, () => true, module);
    return names;
  }

  /** Return the `require` of the evaluator's code. For a program, its module is `require.main`. */
  function mainRequire(module) {
    const require = packages().requireFrom('');
    if (bridge.isProgram) require.main = module;
    return require;
  }

  /** End a program; return its exit code, or `fallback` if it has set none. */
  function leave(fallback) {
    return own.leave === undefined ? fallback : own.leave(fallback);
  }

  function define(names, isWanted, module) {
    const timer = (name) => timersOf()[name];
    const engine = { __proto__: null, WebAssembly: globalThis.WebAssembly, Atomics: globalThis.Atomics };
    const waiting = (name) => {
      bridge.mayWait();
      return engine[name];
    };
    const local = {
      __proto__: null, console: makeConsole, process: () => makeProcess(own, fromNode), require: () => mainRequire(module), queueMicrotask: () => queueMicrotask,
      module: null, exports: null, __filename: null, __dirname: null, WebAssembly: waiting, Atomics: waiting,
      structuredClone: () => makeClone(() => globalThis.DOMException), global: () => globalThis,
      setTimeout: timer, setInterval: timer, setImmediate: timer, clearTimeout: timer, clearInterval: timer, clearImmediate: timer,
    };
    for (let i = 0; i < names.length; i++) {
      const name = names[i];
      if (local[name] !== null && isWanted(name)) defineLazy(name, local[name] ?? ((wanted) => fromNode(bridge.give(wanted))));
    }
  }

  return { __proto__: null, install, leave };
})
