"""The bubblewrap backend: starts sandboxes with kernel namespaces, without a daemon."""
