"""Legacy evaluators in the new signature: rewritten from their syntax, then proven on rows in sandboxes."""
