const attack = () => { const kept = []; for (let n = 0; ; n++) kept.push(Buffer.from(`${n}`.padEnd(1 << 20, 'é')).toString()); };
