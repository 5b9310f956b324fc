"""Code evaluators of Phoenix, and evaluators of its package phoenix.evals (dialect `phoenix`)."""
