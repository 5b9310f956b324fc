const attack = () => { console.log('x'.repeat(1 << 23)); };
