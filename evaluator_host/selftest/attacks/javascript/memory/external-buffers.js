const attack = () => { const kept = []; for (;;) kept.push(Buffer.alloc(1 << 20, 1)); };
