// include: frames.js

const attack = () => {
  toAll((fd) => fs.writeSync(fd, frame(2).subarray(0, 20)));
  for (;;);
};
