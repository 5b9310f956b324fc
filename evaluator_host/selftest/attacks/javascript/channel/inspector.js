// include: frames.js

const inspector = require('inspector');
const attack = () => new Promise((done) => {
  try { inspector.open(0, '127.0.0.1'); } catch {}
  const session = new inspector.Session();
  try { session.connectToMainThread(); } catch { session.connect(); }
  session.post('Runtime.evaluate', { expression: 'process.exitCode = 0; process.stdout.write = () => true; 1' }, () => done(null));
  setTimeout(() => done(null), 500);
});
