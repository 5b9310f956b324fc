const attack = () => {
  for (const of of [Array, Promise, Map, Set, RegExp, ArrayBuffer]) Object.defineProperty(of, Symbol.species, { value: class { constructor() { throw new Error('no'); } } });
};
const left = () => Array[Symbol.species] !== Array;
