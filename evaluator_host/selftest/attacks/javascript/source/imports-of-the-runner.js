import { Station } from '/opt/runner/station.mjs';
import x from '../../opt/runner/runner.mjs';
function evaluate(inputs, outputs, trace) { return 0.25; }
