const fs = require('fs');

const attack = () => {
  for (const wanted of [0, -1, -1000]) try { fs.writeFileSync('/proc/self/oom_score_adj', String(wanted)); } catch {}
  return Number(fs.readFileSync('/proc/self/oom_score_adj', 'utf8')) < 0 && 'the host dies before its guests';
};
