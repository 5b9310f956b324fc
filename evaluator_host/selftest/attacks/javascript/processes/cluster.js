// include: child.js

const cluster = require('cluster');
const attack = (inputs) => new Promise((done) => {
  cluster.setupPrimary?.({ exec: '/proc/self/cmdline', silent: true });
  const worker = cluster.fork({ MARK: inputs.mark });
  worker.on('error', () => done(null));
  worker.on('exit', () => done(null));
});
