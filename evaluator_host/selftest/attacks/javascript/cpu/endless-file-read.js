const attack = () => { require('fs').readFileSync('/dev/zero'); };
