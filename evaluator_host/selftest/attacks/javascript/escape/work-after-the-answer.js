const attack = () => {
  setTimeout(() => console.log('late'), 0);
  setImmediate(() => { globalThis.Date = null; });
  setInterval(() => console.log('late'), 1);
  Promise.resolve().then(function again() { return new Promise((done) => setTimeout(done, 1)).then(again); });
  require('fs').promises.readFile('/etc/passwd').then(() => console.log('late'));
};
