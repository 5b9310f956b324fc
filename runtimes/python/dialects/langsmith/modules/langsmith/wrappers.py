"""Wrappers of clients, which trace nothing here."""


def wrap_openai(client, *args, **kwargs):
    """Return the client unchanged."""
    return client


wrap_anthropic = wrap_gemini = wrap_openai
