const attack = () => {
  Buffer.from = Buffer.alloc = Buffer.byteLength = () => 'x';
  Buffer.prototype.toString = Uint8Array.prototype.toString = () => 'x';
};
const left = () => Buffer.from('a').toString() !== 'a';
