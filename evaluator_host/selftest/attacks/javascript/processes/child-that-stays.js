// include: child.js

const attack = (inputs) => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', 'stays-behind', inputs.mark], { detached: true, stdio: 'ignore' });
  child.unref();
  return new Promise((done) => setTimeout(done, 200));
};

const left = () => fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).filter((pid) => {
  try { return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('stays-behind'); } catch { return false; }
}).join();
