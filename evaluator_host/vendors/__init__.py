"""Contains a folder for each platform whose evaluators run here unchanged."""
