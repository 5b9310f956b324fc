import sys

class Hook:
    def find_spec(self, name, path=None, target=None):
        raise SystemExit(name)

sys.meta_path.insert(0, Hook())
sys.path_hooks.insert(0, lambda path: 1 / 0)
sys.path_importer_cache.clear()

def evaluate(inputs, outputs, trace):
    return 0.25
