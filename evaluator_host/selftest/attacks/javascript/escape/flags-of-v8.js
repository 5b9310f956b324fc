const attack = () => {
  const v8 = require('v8');
  v8.setFlagsFromString('--allow-natives-syntax');
  v8.setFlagsFromString('--stack-size=65500');
  const down = (n) => down(n + 1) + 1;
  return down(0) > 1e9;
};
