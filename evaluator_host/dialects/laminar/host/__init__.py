"""The wire `laminar`: answers requests that Laminar sends to its code executor."""
