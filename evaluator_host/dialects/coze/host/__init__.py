"""The wire `coze`: answers requests that Coze Loop sends to its code runtimes."""
