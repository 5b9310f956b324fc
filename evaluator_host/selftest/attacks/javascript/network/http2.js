const attack = (inputs) => new Promise((done) => {
  const session = require('http2').connect(`http://127.0.0.1:${inputs.port}`);
  session.on('connect', () => done('connected'));
  session.on('error', () => done(null));
});
