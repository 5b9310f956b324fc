const attack = () => { const again = () => Promise.resolve().then(again); return again(); };
