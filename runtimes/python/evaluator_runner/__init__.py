"""The Python runner: a supervisor, which never runs user code; a zygote, which loads the code; one process per row.

The runner imports little of the standard library and nothing else. An idle sandbox holds only these modules in memory,
and each imported module makes every fork slower, because a fork copies the page tables.
"""
