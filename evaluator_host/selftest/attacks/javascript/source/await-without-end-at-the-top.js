await new Promise(() => {});
export function evaluate(inputs, outputs, trace) { return 0.25; }
