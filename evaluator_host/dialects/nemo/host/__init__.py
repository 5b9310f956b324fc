"""Verbs and routes for NVIDIA's NeMo Platform client, over our data sets and durable jobs."""
