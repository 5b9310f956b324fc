"""HTTP below the routes: connections, middleware, bodies, responses and errors."""
