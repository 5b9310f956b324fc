for (;;);
function evaluate(inputs, outputs, trace) { return 0.25; }
