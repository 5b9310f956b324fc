/*
 * Makes the timers of one context, on first use. Each timer belongs to a row, which stops its remaining timers when it
 * ends.
 */
(function (p, bridge) {
  'use strict';

  class Timeout {
    #id;
    #start;
    #holds = true;
    constructor(id, start) {
      this.#id = id;
      this.#start = start;
    }
    static idOf(timer) {
      return typeof timer === 'object' && timer !== null && #id in timer ? timer.#id : +timer;
    }
    ref() { return this.#hold(true); }
    unref() { return this.#hold(false); }
    hasRef() { return this.#holds; }
    #hold(holds) {
      this.#holds = holds;
      bridge.holdTimer(this.#id, holds);
      return this;
    }
    refresh() {
      bridge.stopTimer(this.#id);
      this.#start(this.#id);
      return this.#hold(this.#holds);
    }
    close() {
      bridge.stopTimer(this.#id);
      return this;
    }
    [Symbol.toPrimitive]() { return this.#id; }
    [Symbol.dispose]() { bridge.stopTimer(this.#id); }
  }

  function start(kind, callback, delay, parts) {
    if (typeof callback !== 'function') {
      const error = new p.TypeError('The "callback" argument must be of type function');
      error.code = 'ERR_INVALID_ARG_TYPE';
      throw error;
    }
    const fire = () => { p.apply(callback, undefined, parts); };
    const id = bridge.newTimer();
    const begin = (timer) => bridge.startTimer(timer, kind, fire, +delay);
    begin(id);
    return new Timeout(id, begin);
  }

  function stop(timer) {
    if (timer !== undefined && timer !== null) bridge.stopTimer(Timeout.idOf(timer));
  }

  /** Return the function that util.promisify(setTimeout) gives. */
  function promisified(kind) {
    return (delay, value) => new p.Promise((resolve) => {
      const immediate = kind === 'immediate';
      start(kind, () => resolve(immediate ? delay : value), immediate ? 0 : delay, []);
    });
  }

  const timers = {
    setTimeout(callback, delay, ...parts) { return start('timeout', callback, delay, parts); },
    setInterval(callback, delay, ...parts) { return start('interval', callback, delay, parts); },
    setImmediate(callback, ...parts) { return start('immediate', callback, 0, parts); },
    clearTimeout: stop,
    clearInterval: (timer) => stop(timer),
    clearImmediate: (timer) => stop(timer),
  };
  const custom = Symbol.for('nodejs.util.promisify.custom');
  p.defineProperty(timers.setTimeout, custom, { __proto__: null, value: promisified('timeout') });
  p.defineProperty(timers.setImmediate, custom, { __proto__: null, value: promisified('immediate') });
  return timers;
})
