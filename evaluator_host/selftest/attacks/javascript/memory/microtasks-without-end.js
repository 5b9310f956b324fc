const attack = () => { for (;;) Promise.resolve(new Array(1000).fill(1)).then((x) => x); };
