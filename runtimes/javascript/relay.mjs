// @ts-check
/**
 * Carries connections of user code to the host: user code connects to a port on the sandbox's own loopback, and the bytes
 * travel in frames. Connections are accepted only while a row runs or the code is loaded, and end with the row. This
 * module does not look at their content.
 */
const net = process.getBuiltinModule('node:net');

const CONNECTIONS = 64; // maximum number of open connections; further connections are closed at once
const READ_BYTES = 64 * 1024;
const UNREAD_BYTES = 32 * 1024 * 1024; // maximum number of bytes that user code may leave unread; after that, the connection is closed

/** @typedef {{socket: import('node:net').Socket, closing: boolean}} Connection */

export class Relay {
  /** @type {Map<number, Connection>} */
  #connections = new Map();
  #last = 0;
  #channel;
  #isOpen;
  #server;

  /**
   * @param {import('./channel.mjs').Channel} channel
   * @param {() => boolean} isOpen whether user code may connect now
   */
  constructor(channel, isOpen) {
    this.#channel = channel;
    this.#isOpen = isOpen;
    this.#server = net.createServer({ noDelay: true }, (socket) => this.#accept(socket));
  }

  /** Open the port. @returns {Promise<string>} `127.0.0.1:port` */
  listen() {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(0, '127.0.0.1', CONNECTIONS, () => {
        resolve(`127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (this.#server.address()).port}`);
      });
    });
  }

  /** Pass bytes from the host on; do nothing for a connection that is closed. @param {any} header @param {Buffer} body */
  take({ connection: number, end }, body) {
    const connection = this.#connections.get(number);
    if (connection === undefined || connection.closing) return;
    connection.closing = end === true;
    if (body.length > 0) connection.socket.write(body);
    if (connection.socket.writableLength > UNREAD_BYTES) this.#close(number);
    else if (connection.closing) connection.socket.end(); // read and drop the bytes that user code still sends
  }

  /** Close every connection, because the row that made them has its answer. */
  endRow() {
    for (const number of [...this.#connections.keys()]) this.#close(number);
  }

  /** @param {import('node:net').Socket} socket */
  #accept(socket) {
    socket.on('error', () => {}); // the handler of 'close' deals with the error
    if (this.#connections.size >= CONNECTIONS || !this.#isOpen()) return void socket.destroy();
    const number = ++this.#last;
    const connection = { socket, closing: false };
    this.#connections.set(number, connection);
    socket.on('data', (data) => {
      if (connection.closing) return;
      let behind = false;
      for (let at = 0; at < data.length; at += READ_BYTES) behind = !this.#send(number, false, data.subarray(at, at + READ_BYTES)) || behind;
      if (!behind) return;
      socket.pause();
      this.#channel.onDrain(() => socket.resume());
    });
    socket.on('end', () => this.#ended(number));
    socket.on('close', () => this.#ended(number));
  }

  /** @param {number} number */
  #ended(number) {
    const connection = this.#connections.get(number);
    if (connection === undefined) return;
    if (!connection.closing) this.#send(number, true, '');
    this.#close(number);
  }

  /** @param {number} number @param {boolean} end @param {Buffer | string} data */
  #send(number, end, data) {
    return this.#channel.send({ type: 'bytes', connection: number, end }, data);
  }

  /** @param {number} number */
  #close(number) {
    this.#connections.get(number)?.socket.destroy();
    this.#connections.delete(number);
  }
}
