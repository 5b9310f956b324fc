// include: child.js
const attack = () => { process.kill(process.pid, 'SIGSTOP'); for (;;); };
