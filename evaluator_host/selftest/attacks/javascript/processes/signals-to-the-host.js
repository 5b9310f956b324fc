// include: child.js

const attack = (inputs) => {
  try { process.kill(inputs.pid, 0); } catch { return null; }
  return inputs.pid > 100 && `process ${inputs.pid} can be signalled`;
};
