const attack = () => { return Array.from({ length: 5e7 }, () => 1).sort(() => Math.random() - 0.5).join().length; };
