"""Jobs run evaluators over data sets. They can be resumed and compared, and continue after a restart of the host."""
