// @ts-check
/** Lets the runner's sources read the scripts that were built from them, as `boot/` does; RUNNER names their folder. */
import { createRequire } from 'node:module';
import boot from '../../../../runtimes/javascript/boot/compiled.cjs';

boot.compiled = createRequire(import.meta.url)(`${process.env.RUNNER}/compiled.cjs`).compiled;
