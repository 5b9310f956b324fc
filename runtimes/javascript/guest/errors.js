/*
 * Describes a value that user code has thrown. It runs inside the context that threw the value, and returns plain strings. The description cannot
 * fail, whatever the value does (getters, proxies, its own prepareStackTrace).
 */
(function (p, bridge, values) {
  'use strict';
  const MESSAGE = 4096;
  const STACK = 65_536;
  const { Error } = p;

  /** Return `{type, message, stack, code, syscall}`; `stack` is '' for a value that is not an Error. */
  function describe(thrown) {
    if (!bridge.isError(thrown)) return describeValue(thrown);
    const stack = stackOf(thrown);
    return {
      __proto__: null,
      type: typeOf(thrown),
      message: cut(textOf(thrown, 'message') + causeOf(thrown), MESSAGE),
      stack: cut(stack, STACK),
      code: textOf(thrown, 'code'),
      syscall: textOf(thrown, 'syscall'),
    };
  }

  function describeValue(thrown) {
    const type = thrown === null || (typeof thrown !== 'object' && typeof thrown !== 'function') ? typeof thrown : values.nameOf(thrown);
    const message = textOf(thrown, 'message') || textOf({ __proto__: null, thrown: renderValue(thrown) }, 'thrown');
    return { __proto__: null, type: thrown === null ? 'null' : type, message: cut(message, MESSAGE), stack: '', code: '', syscall: '' };
  }

  function renderValue(thrown) {
    try {
      if (typeof thrown === 'object' && thrown !== null) {
        const body = values.encodeResult(thrown, MESSAGE);
        if (body !== null) return 'thrown value: ' + (p.parse(body).value === undefined ? values.nameOf(thrown) : p.quote(p.parse(body).value));
      }
      return typeof thrown === 'string' ? thrown : p.String(thrown);
    } catch {
      return 'a value that cannot be shown was thrown';
    }
  }

  /** Return the name of the class; for a plain Error, a name set on the instance. */
  function typeOf(error) {
    const type = values.nameOf(error);
    const name = textOf(error, 'name');
    return (type === 'Error' || type === 'Object') && name !== '' ? cut(name, 100) : type;
  }

  function textOf(value, key) {
    try {
      const text = value[key];
      return typeof text === 'string' ? text : '';
    } catch {
      return '';
    }
  }

  function causeOf(error) {
    try {
      const cause = error.cause;
      return bridge.isError(cause) ? ' (caused by ' + typeOf(cause) + ': ' + textOf(cause, 'message') + ')' : '';
    } catch {
      return '';
    }
  }

  /** Read the stack without the context's prepareStackTrace, which V8 would call on first access. */
  function stackOf(error) {
    const holders = [Error, globalThis.Error];
    const saved = [takeAside(holders[0]), takeAside(holders[1])];
    try {
      return textOf(error, 'stack');
    } finally {
      putBack(holders[1], saved[1]);
      putBack(holders[0], saved[0]);
    }
  }

  function takeAside(holder) {
    try {
      const descriptor = p.getOwnPropertyDescriptor(holder, 'prepareStackTrace');
      if (descriptor) p.defineProperty(holder, 'prepareStackTrace', { __proto__: null, value: undefined, configurable: true, writable: true });
      return descriptor;
    } catch {
      return undefined;
    }
  }

  function putBack(holder, descriptor) {
    try {
      if (descriptor) p.defineProperty(holder, 'prepareStackTrace', p.assign({ __proto__: null }, descriptor));
    } catch {
      // ignore this error: a value that cannot be restored was not an ordinary function
    }
  }

  function cut(text, length) {
    const whole = p.isWellFormed(text) ? text : p.toWellFormed(text);
    return whole.length > length ? p.slice(whole, 0, length - 1) + '…' : whole;
  }

  return { __proto__: null, describe };
})
