const attack = () => { return /(a+)+$/.test('a'.repeat(64) + '!') && 1; };
