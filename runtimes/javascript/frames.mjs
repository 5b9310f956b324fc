// @ts-check
/** Encodes and decodes frames of the runner protocol (PROTOCOL.md): eight bytes of lengths, a JSON header and an opaque body. */

export const PROTOCOL_VERSION = 1;
const HEADER_BYTES = 2 * 1024 * 1024;
const BODY_BYTES = 64 * 1024 * 1024;
const PREFIX = 8;
const EMPTY = Buffer.alloc(0);

/** The received bytes are not a frame; the channel can no longer be used. */
export class FrameError extends Error {}

/**
 * @param {Record<string, unknown>} header
 * @param {string | Buffer} body JSON text, or '', or the bytes of a connection
 * @returns {Buffer}
 */
export function encode(header, body) {
  const head = JSON.stringify(header);
  const headBytes = Buffer.byteLength(head);
  const bodyBytes = Buffer.byteLength(body);
  if (headBytes > HEADER_BYTES || bodyBytes > BODY_BYTES) {
    throw new FrameError(`a frame is too large: its header has ${headBytes} bytes, its body ${bodyBytes} bytes`);
  }
  const frame = Buffer.allocUnsafe(PREFIX + headBytes + bodyBytes);
  frame.writeUInt32BE(headBytes, 0);
  frame.writeUInt32BE(bodyBytes, 4);
  frame.write(head, PREFIX, 'utf8');
  if (typeof body === 'string') frame.write(body, PREFIX + headBytes, 'utf8');
  else body.copy(frame, PREFIX + headBytes);
  return frame;
}

/** Splits a byte stream into frames. Keeps an incomplete frame as chunks, so that a long body is copied only once. */
export class FrameDecoder {
  /** @type {Buffer[]} */
  #chunks = [];
  #held = 0;
  #wanted = PREFIX;

  /**
   * @param {Buffer} data
   * @returns {{header: any, body: Buffer}[]} every frame that is complete now
   */
  feed(data) {
    this.#chunks.push(data);
    this.#held += data.length;
    if (this.#held < this.#wanted) return [];
    let rest = this.#chunks.length === 1 ? data : Buffer.concat(this.#chunks, this.#held);
    const frames = [];
    for (;;) {
      this.#wanted = frameBytes(rest);
      if (rest.length < this.#wanted || this.#wanted === PREFIX) break;
      frames.push(parse(rest.subarray(0, this.#wanted)));
      rest = rest.subarray(this.#wanted);
    }
    this.#chunks = rest.length ? [rest] : [];
    this.#held = rest.length;
    return frames;
  }
}

/**
 * @param {Buffer} data
 * @returns {number} bytes of the frame that begins here, or of the prefix while that is incomplete
 */
function frameBytes(data) {
  if (data.length < PREFIX) return PREFIX;
  const head = data.readUInt32BE(0);
  const body = data.readUInt32BE(4);
  if (head > HEADER_BYTES || body > BODY_BYTES) {
    throw new FrameError(`a frame is too large: its header has ${head} bytes, its body ${body} bytes`);
  }
  if (head === 0) throw new FrameError('a frame has no header');
  return PREFIX + head + body;
}

/** @param {Buffer} frame */
function parse(frame) {
  const headEnd = PREFIX + frame.readUInt32BE(0);
  const header = JSON.parse(frame.toString('utf8', PREFIX, headEnd));
  if (typeof header?.type !== 'string') throw new FrameError('the header of a frame has no type');
  return { header, body: headEnd === frame.length ? EMPTY : frame.subarray(headEnd) };
}
