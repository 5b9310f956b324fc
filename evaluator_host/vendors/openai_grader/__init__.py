"""OpenAI's Python graders (dialect `openai-grader`)."""
