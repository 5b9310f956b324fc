const attack = () => Buffer.alloc(2 ** 28, 1).length;
