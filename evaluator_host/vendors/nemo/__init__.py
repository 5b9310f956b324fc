"""Runs NeMo Evaluator's metrics, and serves the routes that NVIDIA's NeMo Platform client calls."""
