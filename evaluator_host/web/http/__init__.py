"""HTTP below the routes: connections, middleware, bodies, responses, errors."""
