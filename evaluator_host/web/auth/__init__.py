"""Keys, workspaces, rate limits, audit: who may call, and the record of the calls."""
