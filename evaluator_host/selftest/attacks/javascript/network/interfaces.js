const attack = () => {
  try {
    return Object.values(require('os').networkInterfaces()).flat().filter((one) => !one.internal).map((one) => one.address).join();
  } catch {
    return null; // the filter refuses the socket that would ask for them
  }
};
