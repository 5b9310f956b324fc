"""Results of jobs: figures, pages of rows, comparisons, downloads."""
