const attack = () => { const kept = []; for (;;) kept.push(new Array(1e5).fill(1.5)); };
