"""One module per change of the tables, `r<number>_<what>.py`, oldest first; a released one is never edited."""
