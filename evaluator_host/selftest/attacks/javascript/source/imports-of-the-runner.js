import { WorkerPair } from '/opt/runner/worker_pair.mjs';
import x from '../../opt/runner/runner.mjs';
function evaluate(inputs, outputs, trace) { return 0.25; }
