const attack = () => {
  Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => 0.75;
  Reflect.apply = Reflect.get = Reflect.ownKeys = () => 0.75;
  Function.prototype[Symbol.hasInstance] ?? 0;
};
const left = () => (() => 1).call() !== 1;
