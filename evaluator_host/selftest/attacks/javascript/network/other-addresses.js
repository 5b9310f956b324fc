// include: reach.js

const attack = async (inputs) => {
  const found = await Promise.all(inputs.addresses.map((host) => reach({ host, port: inputs.port, far: true })));
  return found.filter(Boolean).join();
};
