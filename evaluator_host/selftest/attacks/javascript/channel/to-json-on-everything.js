const attack = () => {
  for (const of of [Object, Array, Number, String, Boolean, Function]) of.prototype.toJSON = () => 0.75;
};
const left = () => ({}).toJSON !== undefined;
