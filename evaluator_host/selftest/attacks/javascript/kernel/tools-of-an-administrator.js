const fs = require('fs');

const { spawnSync } = require('child_process');
const TOOLS = [['unshare', '-r', 'id'], ['mount', '-t', 'tmpfs', 'none', '/tmp'], ['nsenter', '-t', '1', '-a', 'id'], ['chroot', '/tmp', '/bin/true'],
  ['su', '-c', 'id'], ['sudo', '-n', 'id'], ['dmesg'], ['modprobe', 'loop'], ['ip', 'link', 'add', 'd0', 'type', 'dummy'], ['hostname', 'left'], ['date', '-s', '2020-01-01']];
const attack = () => TOOLS.filter(([tool, ...args]) => spawnSync(tool, args, { timeout: 3000 }).status === 0).map(([tool]) => tool).join();
