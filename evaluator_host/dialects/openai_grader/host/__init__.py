"""The grader routes of the API of OpenAI."""
