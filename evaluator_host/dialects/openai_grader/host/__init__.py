"""The wire `openai`: the grader routes of OpenAI's API."""
