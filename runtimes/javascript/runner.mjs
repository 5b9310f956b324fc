// @ts-check
/**
 * The JavaScript runner: takes frames from the host, has user code run in a worker thread, answers.
 *
 * This thread never runs user code. What may not wait for that code - limits, `cancel`, the end of the channel - is
 * decided here. See PROTOCOL.md.
 */
import { parseArgs } from 'node:util';
import { Channel, die } from './channel.mjs';
import { claimDescriptors, fail, tellOperator } from './descriptors.mjs';
import { PROTOCOL_VERSION } from './frames.mjs';
import { dropTo } from './privileges.mjs';
import { Evaluator } from './evaluator.mjs';

const DEFAULT_MEMORY_MB = 256;

function main() {
  const { values } = parseArgs({
    options: {
      esbuild: { type: 'string' }, packages: { type: 'string' }, 'drop-to': { type: 'string' },
      'private-tmp': { type: 'boolean', default: false }, 'memory-mb': { type: 'string' },
    },
  });
  const descriptors = claimDescriptors();
  if (values['drop-to'] !== undefined) dropTo(values['drop-to']);
  const channel = new Channel(descriptors);
  channel.send({ type: 'hello', protocol: PROTOCOL_VERSION, language: 'javascript', runtime: `node ${process.versions.node}` });
  const evaluator = new Evaluator(channel, {
    memoryMb: Number(values['memory-mb'] ?? DEFAULT_MEMORY_MB), descriptors, ownSandbox: values['private-tmp'],
  }, { esbuild: values.esbuild ?? null, packages: values.packages ?? null });
  channel.listen((frames) => evaluator.take(frames), (reason) => {
    if (reason) tellOperator(reason);
    die();
  });
  setImmediate(() => void evaluator.getReady()); // after hello, while nobody waits
}

process.on('uncaughtException', (error) => {
  tellOperator(String(error instanceof Error ? error.stack : error));
  die();
});

try {
  main();
} catch (error) {
  fail(error instanceof Error ? error.message : String(error));
}
