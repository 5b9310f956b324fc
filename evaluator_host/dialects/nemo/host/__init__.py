"""Services and routes for NVIDIA's NeMo Platform client, over this host's data sets and jobs."""
