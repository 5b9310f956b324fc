// include: child.js
const attack = () => process.abort();
