#!/usr/bin/env node
function evaluate(inputs, outputs, trace) { return 0.25; }
