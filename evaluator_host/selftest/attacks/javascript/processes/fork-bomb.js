// include: child.js

const attack = () => {
  const found = [];
  for (let n = 0; n < 24; n++) {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    child.on('error', () => {});
    if (child.pid) found.push(child.pid);
  }
  return found.length >= 24;
};
