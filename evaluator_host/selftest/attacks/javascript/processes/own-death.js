// include: child.js
const attack = () => { process.kill(process.pid, 'SIGKILL'); for (;;); };
