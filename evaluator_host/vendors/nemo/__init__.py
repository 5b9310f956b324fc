"""Runs metrics of NeMo Evaluator, and serves the routes that NVIDIA's NeMo Platform client calls."""
