const fs = require('fs');
const tried = (action) => { try { return action(); } catch { return null; } };

const PLACES = ['/tmp', '/dev/shm'];
const attack = (inputs) => {
  for (const folder of PLACES) {
    fs.mkdirSync(`${folder}/closed/deeper`, { recursive: true });
    fs.writeFileSync(`${folder}/${inputs.mark}`, 'x');
    fs.writeFileSync(`${folder}/closed/deeper/x`, 'x');
    fs.chmodSync(`${folder}/closed/deeper`, 0);
    fs.chmodSync(`${folder}/closed`, 0);
  }
};
const left = () => PLACES.flatMap((folder) => fs.readdirSync(folder)).filter((name) => !name.startsWith('.output')).join();
