// include: reach.js
const attack = (inputs) => reach({ host: '127.0.0.1', port: inputs.port });
