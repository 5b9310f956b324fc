"""The route of the executor of Laminar."""
