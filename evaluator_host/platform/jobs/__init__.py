"""Jobs, which run evaluators over data sets: they can be resumed and compared, and survive a restart of the host."""
