"""Settings of a host: the only reader of the process environment."""
