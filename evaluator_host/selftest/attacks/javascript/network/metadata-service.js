// include: reach.js
const attack = () => reach({ host: '169.254.169.254', port: 80, far: true });
