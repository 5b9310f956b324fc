// include: child.js
const attack = () => process.exit(0);
