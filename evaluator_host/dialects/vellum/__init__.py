"""Code execution of Vellum; its metrics are contract `main`."""
