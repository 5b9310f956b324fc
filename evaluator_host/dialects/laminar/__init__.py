"""Online evaluators of Laminar."""
