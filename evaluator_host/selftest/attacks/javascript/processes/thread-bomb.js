// include: child.js

const { Worker } = require('worker_threads');
const attack = () => new Promise((done) => {
  let up = 0;
  for (let n = 0; n < 64; n++) {
    const worker = new Worker('setInterval(() => {}, 1000)', { eval: true, stdout: true, stderr: true });
    worker.on('online', () => { if (++up >= 64) done('64 threads'); });
    worker.on('error', () => done(null));
  }
});
