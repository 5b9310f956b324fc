// include: reach.js
const attack = (inputs) => reach({ path: inputs.socket });
