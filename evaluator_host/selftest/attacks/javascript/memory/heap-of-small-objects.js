const attack = () => { let last = null; for (;;) last = { last, more: [1, 2, 3] }; };
