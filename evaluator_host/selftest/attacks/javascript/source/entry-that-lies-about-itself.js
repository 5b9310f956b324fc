function evaluate(inputs, outputs, trace) { return 0.25; }
evaluate = new Proxy(evaluate, { get(of, key) { if (key === 'length') throw new Error('no'); return of[key]; } });
Object.defineProperty(evaluate, 'toString', { value() { throw new Error('no'); } });
