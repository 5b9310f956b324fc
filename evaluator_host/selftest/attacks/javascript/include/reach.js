const net = require('net');

/** Return what answers at an address; a refusal counts as an answer. */
const reach = (address) => new Promise((done) => {
  const socket = net.connect(address);
  const end = (what) => { socket.destroy(); done(what); };
  socket.setTimeout(500, () => end('a connection without an answer'));
  socket.on('connect', () => end(`connected to ${JSON.stringify(address)}`));
  socket.on('error', (error) => end(error.code === 'ECONNREFUSED' && address.far ? 'refused from afar' : null));
});
