"""What NVIDIA's NeMo Platform client expects of a host, over our own data sets and durable jobs."""
