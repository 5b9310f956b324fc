"""Types that every package shares: evaluators, rows, outcomes, errors. This package does no I/O and decides nothing."""
