const fs = require('fs');
const tried = (action) => { try { return action(); } catch { return null; } };
const attack = (inputs) => tried(() => fs.readFileSync(inputs.file, 'utf8'));
