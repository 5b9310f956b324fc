// include: child.js

const attack = (inputs) => {
  const code = `console.log(require('fs').readFileSync(${JSON.stringify(inputs.file)}, 'utf8'))`;
  return spawnSync(...node(code)).stdout?.toString();
};
