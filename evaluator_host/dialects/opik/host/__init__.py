"""The requests of Opik to its Python backend."""
