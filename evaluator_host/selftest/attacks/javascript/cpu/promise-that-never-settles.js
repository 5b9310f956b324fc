const attack = () => { setInterval(() => {}, 1000); return new Promise(() => {}); };
