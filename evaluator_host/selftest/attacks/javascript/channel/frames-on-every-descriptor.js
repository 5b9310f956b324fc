// include: frames.js
const attack = () => { for (let id = 1; id < 6; id++) toAll((fd) => fs.writeSync(fd, frame(id))); };
