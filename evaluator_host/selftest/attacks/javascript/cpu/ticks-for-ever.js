const attack = () => { const again = () => process.nextTick(again); again(); };
