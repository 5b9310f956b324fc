// include: frames.js

const { workerData } = require('worker_threads');
const attack = () => {
  for (const message of [null, 1, 'x', [], [2], [2, ''], [2, '', {}], { type: 'exit', code: {} }, { type: 'offers' }, { type: 'load_failed' },
    [2, '', 'x'.repeat(1 << 20), 'x', 'x', 'x', 'x'], { toString: null }]) {
    try { workerData?.port?.postMessage(message); } catch {}
  }
};
