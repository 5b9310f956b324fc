"""Jobs run evaluators over data sets.

You can resume and compare jobs, and they continue after a restart of the host.
"""
