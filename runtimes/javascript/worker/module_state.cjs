// @ts-check
'use strict';
/** Resets the state that a row can change in Node's own modules, and that no property of these modules shows. */
const os = require('node:os');
const { performance, PerformanceObserver } = require('node:perf_hooks');
const { getDefaultHighWaterMark, setDefaultHighWaterMark } = require('node:stream');

/** @type {Set<PerformanceObserver>} observers that a row has not disconnected */
const observers = new Set();
const priority = ownPriority();
const waterMarks = /** @type {[boolean, number][]} */ ([false, true].map((objects) => [objects, getDefaultHighWaterMark(objects)]));

const { observe } = PerformanceObserver.prototype;
PerformanceObserver.prototype.observe = /** @this {PerformanceObserver} @param {any} options */ function (options) {
  observers.add(this);
  return observe.call(this, options);
};

/** Empty the performance timeline and restore the defaults of streams; return whether the thread's priority is unchanged. */
function resetModules() {
  for (const observer of observers) observer.disconnect();
  observers.clear();
  performance.clearMarks();
  performance.clearMeasures();
  performance.clearResourceTimings();
  for (const [objects, mark] of waterMarks) {
    if (getDefaultHighWaterMark(objects) !== mark) setDefaultHighWaterMark(objects, mark);
  }
  return ownPriority() === priority;
}

function ownPriority() {
  try {
    return os.getPriority();
  } catch {
    return 0;
  }
}

module.exports = { resetModules };
