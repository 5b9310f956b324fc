module.exports = new Proxy({}, { ownKeys() { throw new Error('no'); }, get() { throw new Error('no'); }, has() { throw new Error('no'); } });
