const attack = () => {
  const { createHook, AsyncLocalStorage } = require('async_hooks');
  createHook({ init() { globalThis.seen = (globalThis.seen ?? 0) + 1; }, before() { throw new Error('left'); } }).enable();
  new AsyncLocalStorage().enterWith('left');
  require('diagnostics_channel').subscribe('x', () => {});
};
