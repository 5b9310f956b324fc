// @ts-check
/** Reads and writes frames on the channel to the host. When the channel ends, the runner ends at once, whatever it is doing. */
import { FrameDecoder, encode } from './frames.mjs';

const net = process.getBuiltinModule('node:net');

const UNSENT_BYTES = 1024 * 1024;

export class Channel {
  #input;
  #output;
  /** @type {Buffer[]} */
  #unsent = [];

  /** @param {import('./descriptors.mjs').Descriptors} descriptors */
  constructor(descriptors) {
    this.#input = new net.Socket({ fd: descriptors.input, readable: true, writable: false });
    this.#output = new net.Socket({ fd: descriptors.output, readable: false, writable: true });
  }

  /** @param {(frames: {header: any, body: Buffer}[]) => void} onFrames @param {(reason: string) => void} onEnd */
  listen(onFrames, onEnd) {
    const decoder = new FrameDecoder();
    this.#input.on('data', (data) => {
      try {
        onFrames(decoder.feed(data));
      } catch (error) {
        onEnd(error instanceof Error ? String(error.stack) : String(error));
      }
    });
    for (const event of ['end', 'error', 'close']) {
      this.#input.on(event, () => onEnd(''));
      this.#output.on(event, () => onEnd(''));
    }
  }

  /**
   * Queue a frame; frames queued in one turn of the event loop are written together.
   *
   * @param {Record<string, unknown>} header
   * @param {string | Buffer} body
   * @returns {boolean} whether the host reads fast enough; if not, `onDrain` is called once it has caught up
   */
  send(header, body = '') {
    if (this.#unsent.length === 0) setImmediate(() => this.#flush());
    this.#unsent.push(encode(header, body));
    return this.#output.writableLength < UNSENT_BYTES;
  }

  /** @param {() => void} then a function to call once, when everything that was queued has been written */
  onDrain(then) {
    if (this.#output.writableNeedDrain) this.#output.once('drain', then);
    else setImmediate(then);
  }

  #flush() {
    const data = this.#unsent.length === 1 ? this.#unsent[0] : Buffer.concat(this.#unsent);
    this.#unsent = [];
    this.#output.write(data);
  }
}

/** End this process by a signal, because nothing else reliably ends a thread that is stuck in native code. @returns {never} */
export function die() {
  process.kill(process.pid, 'SIGKILL');
  process.abort(); // process 1 of a container cannot kill itself
}
