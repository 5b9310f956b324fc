"""The part of the API of Daytona by which other platforms run scripts."""
