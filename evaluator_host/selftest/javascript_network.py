"""JavaScript attacks on the network: by every module of Node that opens a connection."""
# ruff: noqa: E501 - programs, of which some are one line

from typing import Final

from evaluator_host.selftest.attack import Attack, Group, Guard, javascript

_ALONE: Final = "the sandbox has a network namespace of its own with nothing in it"
_REACH: Final = """
const net = require('net');

/** What answers there; a refusal from afar counts. */
const reach = (address) => new Promise((done) => {
  const socket = net.connect(address);
  const end = (what) => { socket.destroy(); done(what); };
  socket.setTimeout(500, () => end('no answer, but a way there'));
  socket.on('connect', () => end(`connected to ${JSON.stringify(address)}`));
  socket.on('error', (error) => end(error.code === 'ECONNREFUSED' && address.far ? 'refused from afar' : null));
});
"""


def _network(name: str, program: str, guard: Guard | tuple[Guard, ...] = Guard.NETWORK, why: str = _ALONE) -> Attack:
    return javascript(f"javascript-{name}", Group.NETWORK, program, why=why, without=guard)


ATTACKS: Final[tuple[Attack, ...]] = (
    _network("loopback-port", _REACH + "const attack = (inputs) => reach({ host: '127.0.0.1', port: inputs.port });\n"),
    _network(
        "other-addresses",
        _REACH
        + """
const attack = async (inputs) => {
  const found = await Promise.all(inputs.addresses.map((host) => reach({ host, port: inputs.port, far: true })));
  return found.filter(Boolean).join();
};
""",
    ),
    _network(
        "fetch",
        """
const attack = async (inputs) => {
  try {
    return (await fetch(`http://127.0.0.1:${inputs.port}/`, { signal: AbortSignal.timeout(1000) })).status;
  } catch (error) {
    return error.cause?.code === 'ECONNREFUSED' || error.name === 'TimeoutError' ? null : String(error.cause?.code ?? error);
  }
};
""",
    ),
    _network(
        "http-and-https",
        """
const attack = (inputs) => Promise.all(['http', 'https'].map((name) => new Promise((done) => {
  const request = require(name).request({ host: '127.0.0.1', port: inputs.port, timeout: 1000 }, () => done('answered'));
  request.on('error', (error) => done(error.code === 'ECONNREFUSED' ? '' : String(error.code)));
  request.end();
}))).then((found) => found.join(''));
""",
    ),
    _network(
        "http2",
        """
const attack = (inputs) => new Promise((done) => {
  const session = require('http2').connect(`http://127.0.0.1:${inputs.port}`);
  session.on('connect', () => done('connected'));
  session.on('error', () => done(null));
});
""",
    ),
    _network(
        "metadata-service",
        _REACH + "const attack = () => reach({ host: '169.254.169.254', port: 80, far: true });\n",
    ),
    _network(
        "packet-without-connection",
        """
const dgram = require('dgram');
const attack = (inputs) => new Promise((done) => {
  const socket = dgram.createSocket('udp4');
  socket.on('error', () => done(null));
  socket.send('?', 9, inputs.addresses.find((one) => one.includes('.')) ?? '192.0.2.1', (error) => {
    socket.close();
    done(error ? null : 'sent');
  });
});
""",
    ),
    _network(
        "interfaces",
        """
const attack = () => {
  try {
    return Object.values(require('os').networkInterfaces()).flat().filter((one) => !one.internal).map((one) => one.address).join();
  } catch {
    return null; // the filter refuses the socket that asks for them
  }
};
""",
        (Guard.NETWORK, Guard.SECCOMP),
    ),
    _network("abstract-socket", _REACH + "const attack = (inputs) => reach({ path: `\\0${inputs.abstract}` });\n"),
    _network(
        "unix-socket",
        _REACH + "const attack = (inputs) => reach({ path: inputs.socket });\n",
        Guard.ROOT,
        "no path of the host leads into the sandbox",
    ),
    javascript(
        "javascript-engine-socket",
        Group.NETWORK,
        _REACH
        + """
const attack = async (inputs) => (await Promise.all(inputs.engine.map((path) => reach({ path })))).filter(Boolean).join();
""",
        why="the engine's socket is never inside",
        seen="with the folder of a running engine's socket bound into the sandbox",
    ),
    javascript(
        "javascript-name-service",
        Group.NETWORK,
        """
const attack = async () => {
  const { Resolver, lookup } = require('dns').promises;
  const resolver = new Resolver({ timeout: 300, tries: 1 });
  resolver.setServers(['1.1.1.1', '8.8.8.8']);
  const asked = [() => resolver.resolve4('example.com'), () => lookup('example.com')];
  for (const ask of asked) {
    try {
      return String(await ask());
    } catch (error) {
      if (error.code === 'ETIMEOUT') return 'a way there';
    }
  }
};
""",
        why=_ALONE,
        seen="on a machine with a name server, in the host's network namespace",
    ),
)
