"""Evaluators of LangSmith's website and its SDKs (dialect `langsmith`)."""
