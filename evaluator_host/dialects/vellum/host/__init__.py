"""The wire `vellum`: the route that Vellum's SDK calls for code execution nodes."""
