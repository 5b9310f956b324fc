"""Owns the runner's own built-ins, so that user code that replaces `len` or `print` changes only its own.

A module that runs in the same process as user code binds `__builtins__` to this copy before it defines a function:
functions look built-ins up in the dictionary that their module had when they were made.
"""

import builtins

BUILTINS = dict(vars(builtins))
