"""The decorator of functions that Weave traces."""


def op(func=None, **_settings):
    """Mark a function as an op. The decorator can be used with or without parentheses."""
    if func is None:
        return op
    func.is_weave_op = True
    return func
