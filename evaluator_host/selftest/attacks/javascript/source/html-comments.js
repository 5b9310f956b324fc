<!-- not code
function evaluate(inputs, outputs, trace) { return 0.25; }
--> not code either
