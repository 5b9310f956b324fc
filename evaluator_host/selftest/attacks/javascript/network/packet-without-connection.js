const dgram = require('dgram');
const attack = (inputs) => new Promise((done) => {
  const socket = dgram.createSocket('udp4');
  socket.on('error', () => done(null));
  socket.send('?', 9, inputs.addresses.find((one) => one.includes('.')) ?? '192.0.2.1', (error) => {
    socket.close();
    done(error ? null : 'sent');
  });
});
