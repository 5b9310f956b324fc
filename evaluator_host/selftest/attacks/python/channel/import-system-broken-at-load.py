import builtins, sys
builtins.__import__ = None
sys.meta_path.clear(); sys.path_hooks.clear(); sys.modules.clear()

def evaluate(inputs, outputs, trace):
    return {"score": 0.25}
