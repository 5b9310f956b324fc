const attack = () => { const f = new Function('return arguments.callee.caller?.caller?.caller'); return f()?.name; };
