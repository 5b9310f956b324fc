// @ts-check
/**
 * The JavaScript runner: reads frames from the host, runs user code in a worker thread, writes answers.
 *
 * This thread never runs user code. It handles everything that must not wait for user code: limits, `cancel`, the end
 * of the channel. See PROTOCOL.md.
 */
import { Channel, die } from './channel.mjs';
import { claimDescriptors, fail, tellOperator } from './descriptors.mjs';
import { PROTOCOL_VERSION } from './frames.mjs';
import { dropTo } from './privileges.mjs';
import { Evaluator } from './evaluator.mjs';

const DEFAULT_MEMORY_MB = 256;
const READY_AFTER_MS = 50; // delay for the work in advance, so that it does not slow down a load that arrives immediately

/** Parse the arguments; `parseArgs` of `node:util` would take 0.4 MB. @param {string[]} given */
function readArguments(given) {
  const values = {
    esbuild: /** @type {string | null} */ (null), packages: /** @type {string | null} */ (null), data: /** @type {string | null} */ (null),
    dropTo: /** @type {string | null} */ (null), memoryMb: DEFAULT_MEMORY_MB, ownSandbox: false,
  };
  for (const rest = [...given]; rest.length > 0; ) {
    const name = rest.shift();
    if (name === '--private-tmp') values.ownSandbox = true;
    else if (name === '--esbuild') values.esbuild = rest.shift() ?? null;
    else if (name === '--data') values.data = rest.shift() ?? null;
    else if (name === '--packages') values.packages = rest.shift() ?? null;
    else if (name === '--drop-to') values.dropTo = rest.shift() ?? '';
    else if (name === '--memory-mb' && Number(rest[0]) > 0) values.memoryMb = Number(rest.shift());
    else throw new Error(`the argument ${name} is unknown, or lacks its value`);
  }
  return values;
}

function main() {
  const values = readArguments(process.argv.slice(2));
  const descriptors = claimDescriptors();
  if (values.dropTo !== null) dropTo(values.dropTo);
  const channel = new Channel(descriptors);
  channel.send({ type: 'hello', protocol: PROTOCOL_VERSION, language: 'javascript', runtime: `node ${process.versions.node}` });
  const evaluator = new Evaluator(channel, {
    memoryMb: values.memoryMb, descriptors, ownSandbox: values.ownSandbox, dataFolder: values.data, tools: { packages: values.packages, esbuild: values.esbuild, memoryMb: values.memoryMb },
  }, values);
  channel.listen((frames) => evaluator.take(frames), (reason) => {
    if (reason) tellOperator(reason);
    die();
  });
  setTimeout(() => void evaluator.getReady(), READY_AFTER_MS); // `hello` has been sent, and the runner is idle
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
