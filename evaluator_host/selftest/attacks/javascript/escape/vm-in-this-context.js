const attack = () => { require('vm').runInThisContext('globalThis.left = 1; JSON.parse = () => 0.75'); };
const left = () => require('vm').runInThisContext('globalThis.left');
