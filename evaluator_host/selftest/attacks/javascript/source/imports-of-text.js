import passwd from '/etc/passwd' with { type: 'text' };
function evaluate(inputs, outputs, trace) { return 0.25; }
