// include: frames.js

const { workerData } = require('worker_threads');
const attack = () => {
  const pulse = workerData?.pulse;
  if (pulse) for (;;) { new Float64Array(pulse, 0, 1)[0] = 1e300; new Int32Array(pulse, 8).fill(99); }
  for (;;);
};
