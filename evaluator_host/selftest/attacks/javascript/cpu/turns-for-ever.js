const attack = () => { const again = () => setImmediate(again); again(); return new Promise(() => {}); };
