const attack = () => { for (;;); };
