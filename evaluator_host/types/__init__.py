"""Types that every package shares: evaluators, rows, outcomes, errors. They do no I/O and decide nothing."""
