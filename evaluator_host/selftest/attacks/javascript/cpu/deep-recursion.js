const down = (n) => down(n + 1) + 1;
const attack = () => down(0);
