const attack = () => Buffer.alloc(2 ** 29, 1).length;
