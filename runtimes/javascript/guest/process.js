/*
 * Makes the `process` of one context: facts about the sandbox, a copy of its environment, captured output. Changes to it
 * do not reach the runner or the next row.
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

  /** Keep and count listeners without ever calling them, because no process event happens within a row. */
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

  return function makeProcess() {
    const facts = p.parse(bridge.processFacts());
    const made = p.assign(p.create({ constructor: function process() {} }), facts);
    p.assign(made, makeListeners(made), {
      hrtime,
      memoryUsage,
      exitCode: undefined,
      stdout: makeStream(1),
      stderr: makeStream(2),
      stdin: p.assign(makeStream(0), { resume() { return this; }, pause() { return this; }, setEncoding() { return this; } }),
      exit: (code) => bridge.exit(code === undefined ? p.Number(made.exitCode ?? 0) : p.Number(code)),
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
    delete made.uid;
    delete made.gid;
    p.defineProperty(made, Symbol.toStringTag, { __proto__: null, value: 'process', configurable: true });
    return made;
  };
})
