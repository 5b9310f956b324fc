try:
    import _interpreters as own
except ImportError:  # the module's name until Python 3.12
    import _xxsubinterpreters as own

def run_in(interpreter, code):
    """Run code in an interpreter. Return the error, or None if the code succeeded."""
    return (getattr(own, "exec", None) or own.run_string)(interpreter, code)
