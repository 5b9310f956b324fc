"""Files that evaluators read, or that packages would otherwise download. A host stores them by digest."""
