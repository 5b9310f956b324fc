// include: frames.js

const attack = () => {
  for (let id = 1; id < 5; id++) {
    process.stdout.write(frame(id));
    process.stderr.write(frame(id));
    fs.writeSync(1, frame(id));
    fs.writeSync(2, frame(id));
  }
};
