"""Files of rows: their formats, and which column goes to which field of a row."""
