/*
 * Saves the built-ins of one context before user code can replace them. Every context evaluates this file:
 * toolchain/build.mjs joins the files of this folder into one script, in which the others get these built-ins as `p`.
 */
(function () {
  'use strict';
  const { apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
  const uncurry = (method) => (self, first, second) => apply(method, self, [first, second]);
  return {
    apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf,
    assign: Object.assign,
    keys: Object.keys,
    create: Object.create,
    isArray: Array.isArray,
    parse: JSON.parse,
    quote: JSON.stringify, // only for strings, because JSON.stringify calls toJSON of other values
    isFinite: Number.isFinite,
    String, Number, Boolean, BigInt, Symbol, Map, Set, Error, TypeError, RangeError, Promise, Object, Date, Array, RegExp,
    objectPrototype: Object.prototype,
    mapForEach: uncurry(Map.prototype.forEach),
    setForEach: uncurry(Set.prototype.forEach),
    mapSet: uncurry(Map.prototype.set),
    mapGet: uncurry(Map.prototype.get),
    setAdd: uncurry(Set.prototype.add),
    slice: uncurry(String.prototype.slice),
    startsWith: uncurry(String.prototype.startsWith),
    charCodeAt: uncurry(String.prototype.charCodeAt),
    isWellFormed: uncurry(String.prototype.isWellFormed),
    toWellFormed: uncurry(String.prototype.toWellFormed),
    numberValue: uncurry(Number.prototype.valueOf),
    stringValue: uncurry(String.prototype.valueOf),
    booleanValue: uncurry(Boolean.prototype.valueOf),
    bigintValue: uncurry(BigInt.prototype.valueOf),
    functionText: uncurry(Function.prototype.toString),
    ordinaryInstance: uncurry(Function.prototype[Symbol.hasInstance]),
  };
})
