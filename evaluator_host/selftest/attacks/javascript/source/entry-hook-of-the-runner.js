globalThis.__evaluator_host_entries__ = () => { throw new Error('no'); };
function evaluate(inputs, outputs, trace) { return 0.25; }
