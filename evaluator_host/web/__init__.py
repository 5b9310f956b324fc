"""The HTTP API and the pages: request bodies, routes, errors, keys and limits."""
