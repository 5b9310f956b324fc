"""The part of Daytona's API with which other platforms run scripts."""
