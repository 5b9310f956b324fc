const attack = () => {
  const then = Promise.prototype.then;
  Promise.prototype.then = function (done) { return then.call(this, () => done(0.75)); };
  Promise.resolve = () => 0.75;
  globalThis.Promise = class { then(done) { done(0.75); } };
};
const left = () => !String(Promise).includes('native');
