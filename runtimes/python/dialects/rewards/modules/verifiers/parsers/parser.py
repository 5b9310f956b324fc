"""Parsers that read the whole text, or only the text after the model's thinking."""


def _field(message, name, default=None):
    return message.get(name, default) if isinstance(message, dict) else getattr(message, name, default)


class Parser:
    """Applies `extract_fn` to the text of the last answer."""

    def __init__(self, extract_fn=lambda text: text):
        self.extract_fn = extract_fn

    def parse(self, text):
        """Apply `extract_fn` to the text, and return the result."""
        return self.extract_fn(text)

    def parse_answer(self, completion):
        """Return the last answer in a completion, or None if it has no answer."""
        if isinstance(completion, str):
            return self.parse(completion)
        answers = self.get_assistant_messages(completion)
        return self.parse(self.text_of(answers[-1])) if answers else None

    def text_of(self, message):
        """Return the text of a message, whose content may be a list of parts."""
        content = _field(message, "content") or ""
        if isinstance(content, str):
            return content
        return " ".join(str(_field(part, "text", "")) for part in content if _field(part, "text")).strip()

    def _of(self, role, completion):
        return [message for message in completion if _field(message, "role") == role]

    def get_assistant_messages(self, completion):
        """Return the messages of the model."""
        return self._of("assistant", completion)

    def get_system_messages(self, completion):
        """Return the messages of the system."""
        return self._of("system", completion)

    def get_user_messages(self, completion):
        """Return the messages of the user."""
        return self._of("user", completion)

    def get_tool_messages(self, completion):
        """Return the messages of tools."""
        return self._of("tool", completion)

    def format_score(self, _text):
        """Return 1, because this parser requires no format."""
        return 1.0

    def get_format_reward_func(self):
        """Return a reward function that returns the mean of `format_score` over the model's messages."""

        def format_reward_func(completion, **_more):
            messages = self.get_assistant_messages(completion)
            scores = [self.format_score(self.text_of(message)) for message in messages]
            return sum(scores) / len(scores) if scores else 0.0

        return format_reward_func if type(self) is not Parser else lambda completion, **_more: 1.0  # noqa: ARG005 - called by name


class ThinkParser(Parser):
    """Reads the text after `</think>`, or an empty string if `</think>` is missing."""

    def parse(self, text):
        """Apply `extract_fn` to the text after `</think>`, or to an empty string if `</think>` is missing."""
        return self.extract_fn(text.split("</think>")[-1].strip() if "</think>" in text else "")

    def format_score(self, text):
        """Return 1 if the text begins with one block of thinking and has text after the block, else 0."""
        once = text.count("<think>") == text.count("</think>") == 1
        return float(text.strip().startswith("<think>") and once and text.split("</think>")[-1] != "")


class MaybeThinkParser(Parser):
    """Reads the text after `</think>`, or the whole text if `</think>` is missing."""

    def parse(self, text):
        """Apply `extract_fn` to the text after `</think>`, or to the whole text if `</think>` is missing."""
        return self.extract_fn(text.split("</think>")[-1].strip())

    def format_score(self, _text):
        """Return 1, because every text has the right format."""
        return 1.0
