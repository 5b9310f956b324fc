"""The HTTP API and the web pages: request bodies, routes, errors, keys and limits."""
