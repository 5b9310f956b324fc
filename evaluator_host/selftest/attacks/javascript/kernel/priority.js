const fs = require('fs');

const os = require('os');
const attack = () => { try { os.setPriority(0, -5); } catch {} return os.getPriority() < 0; };
