"""The HTTP API: wire models, routes, the one error shape, and what guards them."""
