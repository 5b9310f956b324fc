/*
 * Makes the `process` of one context: facts about the sandbox, a copy of its environment, captured output. Changes to
 * it do not reach the runner or the next row. Its only event is the `exit` of a program.
 */
(function (p, bridge) {
  'use strict';

  function makeStream(fd) {
    return {
      fd,
      isTTY: false,
      writable: true,
      write(chunk, encoding, done) {
        bridge.writeRaw(fd, chunk);
        const callback = typeof encoding === 'function' ? encoding : done;
        if (typeof callback === 'function') bridge.queueMicrotask(() => { callback(); });
        return true;
      },
      end(chunk) {
        if (chunk !== undefined) bridge.writeRaw(fd, chunk);
        return this;
      },
      on() { return this; },
      once() { return this; },
      off() { return this; },
      removeListener() { return this; },
      emit() { return false; },
    };
  }

  function hrtime(earlier) {
    const now = bridge.nanoseconds();
    const since = earlier ? now - (BigInt(earlier[0]) * 1000000000n + BigInt(earlier[1])) : now;
    return [p.Number(since / 1000000000n), p.Number(since % 1000000000n)];
  }
  hrtime.bigint = () => bridge.nanoseconds();

  /** Keep and count listeners. */
  function makeListeners(made) {
    const heard = new p.Map();
    const add = (event, listener) => {
      p.mapSet(heard, event, [...(p.mapGet(heard, event) ?? []), listener]);
      return made;
    };
    const remove = (event, listener) => {
      p.mapSet(heard, event, (p.mapGet(heard, event) ?? []).filter((known) => known !== listener));
      return made;
    };
    return {
      on: add, once: add, addListener: add, prependListener: add, off: remove, removeListener: remove,
      removeAllListeners(event) {
        p.mapSet(heard, event, []);
        return made;
      },
      listeners: (event) => [...(p.mapGet(heard, event) ?? [])],
      listenerCount: (event) => (p.mapGet(heard, event) ?? []).length,
      emit: () => false,
      setMaxListeners: () => made,
    };
  }

  function memoryUsage() {
    return p.parse(bridge.memoryUsage());
  }
  memoryUsage.rss = () => memoryUsage().rss;

  /** Return a prototype for the environment. JavaScript looks up only missing variables in the prototype, which records them. */
  function asked() {
    return new Proxy({}, {
      __proto__: null,
      get(target, name) {
        if (typeof name === 'string') bridge.lacksVariable(name);
        return target[name];
      },
    });
  }

  /** @param own an object to which this function adds `leave`. `leave` tells a program's `exit` listeners that the program ends, and returns the exit
   * code. */
  return function makeProcess(own, fromNode) {
    const facts = p.parse(bridge.processFacts());
    const made = p.assign(p.create({ constructor: function process() {} }), facts);
    made.env = p.assign(p.create(asked()), facts.env);
    p.assign(made, makeListeners(made), {
      hrtime,
      memoryUsage,
      exitCode: undefined,
      stdout: makeStream(1),
      stderr: makeStream(2),
      exit(code) {
        if (code !== undefined) made.exitCode = code;
        bridge.exit(own.leave(0));
      },
      reallyExit: (code) => bridge.exit(p.Number(code ?? 0)),
      abort: () => bridge.exit(134),
      kill: (pid, signal) => bridge.kill(p.Number(pid), signal),
      cwd: () => facts.cwd,
      chdir() { throw new p.Error('process.chdir() is not supported here'); },
      umask: () => 0o22,
      uptime: () => bridge.uptime(),
      report: { excludeNetwork: true, getReport: () => p.parse(bridge.report()) },
      cpuUsage: () => p.parse(bridge.cpuUsage()),
      getuid: () => facts.uid, geteuid: () => facts.uid, getgid: () => facts.gid, getegid: () => facts.gid, getgroups: () => [facts.gid],
      emitWarning(warning) { bridge.print('error', ['(node) Warning:', warning]); },
      nextTick(callback, ...parts) {
        if (typeof callback !== 'function') throw new p.TypeError('The "callback" argument must be of type function');
        bridge.nextTick(() => { p.apply(callback, undefined, parts); });
      },
    });
    let stdin;
    p.defineProperty(made, 'stdin', { __proto__: null, get: () => (stdin ??= fromNode(bridge.standardInput())), enumerable: true, configurable: true });
    let leaving = !bridge.isProgram;
    own.leave = (fallback) => {
      made.exitCode ??= fallback;
      const listeners = leaving ? [] : made.listeners('exit');
      leaving = true;
      for (let i = 0; i < listeners.length; i++) p.apply(listeners[i], made, [p.Number(made.exitCode)]);
      return p.Number(made.exitCode);
    };
    delete made.uid;
    delete made.gid;
    p.defineProperty(made, Symbol.toStringTag, { __proto__: null, value: 'process', configurable: true });
    return made;
  };
})
