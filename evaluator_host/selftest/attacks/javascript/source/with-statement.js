function evaluate(inputs) { with ({ score: 0.25 }) { return score; } }
