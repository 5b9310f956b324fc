const attack = (inputs) => {
  const { WASI } = require('wasi');
  const wasi = new WASI({ version: 'preview1', preopens: { '/': '/' }, returnOnExit: true });
  return typeof wasi.wasiImport.path_open === 'function' && require('fs').existsSync(inputs.file) && 'the host is below /';
};
