"""promptfoo's Python and JavaScript assertions (dialect `promptfoo`)."""
