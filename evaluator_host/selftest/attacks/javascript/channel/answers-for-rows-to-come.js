// include: frames.js

const { workerData } = require('worker_threads');
const attack = () => {
  const { port } = workerData ?? {};
  for (let seq = 1; seq < 100; seq++) port?.postMessage([seq + 2, '', String(BODY), 0, 1, null, false]);
};
