const attack = () => {
  try {
    return Object.values(require('os').networkInterfaces()).flat().filter((one) => !one.internal).map((one) => one.address).join();
  } catch {
    return null; // the seccomp filter refuses the socket with which Node asks the kernel for the interfaces
  }
};
