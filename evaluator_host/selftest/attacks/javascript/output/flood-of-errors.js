const attack = () => { for (let n = 0; n < 20000; n++) console.error('x'.repeat(1000)); };
