"""The requests of Coze Loop to its runtimes."""
