"""Keeps a copy of the built-ins for the runner; user code that replaces `len` or `print` changes only its own copy.

A module that runs in the same process as user code binds `__builtins__` to this copy before it defines a function. A
function looks up built-ins in the dictionary that its module had when the function was defined.
"""

import builtins

BUILTINS = dict(vars(builtins))
