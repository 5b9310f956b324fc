// include: frames.js
const attack = () => { toAll((fd) => fs.closeSync(fd)); };
