const attack = () => { for (const x of (function* () { for (;;) yield 1; })()) x; };
