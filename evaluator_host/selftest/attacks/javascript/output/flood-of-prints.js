const attack = () => { for (let n = 0; n < 20000; n++) console.log('x'.repeat(1000)); };
