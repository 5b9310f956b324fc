const attack = () => { for (;;) try { throw 1; } catch {} finally { continue; } };
