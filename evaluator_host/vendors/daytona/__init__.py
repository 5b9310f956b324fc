"""The part of Daytona's API that other platforms use to run scripts."""
