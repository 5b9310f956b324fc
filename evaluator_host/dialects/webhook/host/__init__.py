"""The wire `webhook`: routes by which other platforms score rows with stored evaluators."""
