// include: reach.js
const attack = (inputs) => reach({ path: `\0${inputs.abstract}` });
