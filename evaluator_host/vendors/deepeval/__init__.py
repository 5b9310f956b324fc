"""DeepEval's custom metrics (dialect `deepeval`)."""
