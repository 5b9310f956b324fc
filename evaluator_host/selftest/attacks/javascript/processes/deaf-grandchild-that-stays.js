// include: child.js

const CODE = "for (const s of ['SIGTERM', 'SIGHUP', 'SIGINT']) process.on(s, () => {}); setInterval(() => {}, 1000)";
const attack = (inputs) => {
  const nested = `require('child_process').spawn(process.execPath, ['-e', ${JSON.stringify(CODE)}, 'stays-behind', '${inputs.mark}'], {detached: true, stdio: 'ignore'}).unref()`;
  spawnSync(...node(nested));
};

const left = () => fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).filter((pid) => {
  try { return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('stays-behind'); } catch { return false; }
}).join();
