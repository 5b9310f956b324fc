"""The wire `opik`: answers requests that Opik sends to its Python backend."""
