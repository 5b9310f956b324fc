"""Light modules that replace `arize-phoenix-client`: evaluators for its experiments."""
