"""The routes that NVIDIA's NeMo Platform client calls, under `/apis`."""
