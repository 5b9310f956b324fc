const attack = (inputs) => Promise.all(['http', 'https'].map((name) => new Promise((done) => {
  const request = require(name).request({ host: '127.0.0.1', port: inputs.port, timeout: 1000 }, () => done('answered'));
  request.on('error', (error) => done(error.code === 'ECONNREFUSED' ? '' : String(error.code)));
  request.end();
}))).then((found) => found.join(''));
