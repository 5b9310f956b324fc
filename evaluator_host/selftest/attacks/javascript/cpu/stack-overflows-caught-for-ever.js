const attack = () => { const down = () => { try { down(); } finally { down(); } }; for (;;) try { down(); } catch {} };
