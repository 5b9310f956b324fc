"""Types that every layer shares: evaluators, rows, outcomes, errors. No I/O, no policy."""
