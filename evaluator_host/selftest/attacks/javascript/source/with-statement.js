function evaluate(inputs, _outputs, _trace) { with ({ score: 0.25 }) { return score; } }
