from evaluator_runner import dialects, entry
from evaluator_runner.builtins_copy import BUILTINS as __builtins__

CONTRACT = "acme-scores"
WORDS = ("rate",)
PREBOUND = False


def sign(outline, name):
    return (dialects.NAMED, "function rate") if "rate" in outline.functions and name in (None, "rate") else None


def find(namespace, *, name, config):
    return entry.find_function(namespace, name or "rate", ("answer",))
