const attack = () => { return Promise.resolve().then(() => { for (;;); }); };
