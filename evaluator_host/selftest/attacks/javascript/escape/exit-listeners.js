const attack = () => {
  for (const name of ['exit', 'beforeExit', 'uncaughtException', 'SIGTERM']) process.on(name, () => console.log('left'));
  require('events').EventEmitter.prototype.left = 1;
};
const left = () => require('events').EventEmitter.prototype.left;
