"""Keys, workspaces, rates, audit: who may call and what is recorded."""
