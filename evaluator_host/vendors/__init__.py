"""One folder for each platform with evaluators that run here unchanged."""
