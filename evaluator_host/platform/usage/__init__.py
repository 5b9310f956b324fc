"""The storage of workspaces, and its limits."""
