"""The Python runner: a supervisor that never runs user code, a zygote that loads it, and one process per row.

Only the standard library, and little of it: an idle sandbox waits with nothing but this in memory, and every module
imported here is copied, page table by page table, with each fork.
"""
