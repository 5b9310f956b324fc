const attack = () => {
  for (const name of Object.getOwnPropertyNames(globalThis)) try { globalThis[name] = () => 0.75; } catch {}
};
const left = () => Math.max(1, 2) !== 2;
