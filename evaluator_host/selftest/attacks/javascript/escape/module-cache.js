const attack = () => {
  const { Module } = require('module');
  for (const name of ['fs', 'os', 'util', 'path']) require(name).left = 1;
  if (Module) { Module._load = () => ({ left: 1 }); if (Module._cache) Module._cache.left = 1; }
};
const left = () => require('fs').left ?? require('os').left ?? require('util').left ?? require('path').left;
