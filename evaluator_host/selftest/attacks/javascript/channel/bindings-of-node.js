// include: frames.js

const attack = () => {
  const binding = require('vm').runInThisContext('process').binding?.('pipe_wrap');
  const { Pipe, constants } = binding ?? {};
  if (Pipe) toAll((fd) => { const pipe = new Pipe(constants.SOCKET); pipe.open(fd); pipe.close(); });
};
