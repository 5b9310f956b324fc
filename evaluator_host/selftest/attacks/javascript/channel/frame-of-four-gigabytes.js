// include: frames.js

const attack = () => {
  toAll((fd) => fs.writeSync(fd, Buffer.concat([Buffer.alloc(8, 255), Buffer.alloc(60000, 32)])));
  return new Promise((done) => setTimeout(done, 500));
};
