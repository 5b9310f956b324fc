"""A parser of texts with tags, such as `<answer>…</answer>`."""

import re

from verifiers.parsers.parser import Parser


class _Fields:
    def __init__(self, fields):
        self.__dict__.update(fields)

    def __repr__(self):
        return f"Fields({self.__dict__!r})"


class XMLParser(Parser):
    """Parses a text into an object with an attribute for each tag; a missing tag gives None."""

    def __init__(self, fields, answer_field="answer", extract_fn=lambda text: text):
        super().__init__(extract_fn=extract_fn)
        self._fields = [[one] if isinstance(one, str) else list(one) for one in fields]
        if any(not tags for tags in self._fields):
            raise ValueError("Field tuple cannot be empty.")
        names = [tags[0] for tags in self._fields]
        if len(set(names)) < len(names):
            raise ValueError(f"Duplicate field name: {next(one for one in names if names.count(one) > 1)}")
        self.answer_field = answer_field

    def parse(self, text, strip=True, last=False):  # noqa: FBT002 - as in verifiers
        """Parse a text's tags; if a tag occurs several times, the first or the last counts, depending on `last`."""
        found = {}
        for tag in (tag for tags in self._fields for tag in tags):
            matches = re.findall(rf"<{tag}>\s*(.*?)\s*</{tag}>", text, re.DOTALL)
            chosen = matches[-1 if last else 0] if matches else None
            found[tag] = chosen.strip() if strip and chosen is not None else chosen
        return _Fields(found)

    def parse_answer(self, completion):
        """Return the text in the last answer tag of a string, or of the last message that has an answer tag."""
        if isinstance(completion, str):
            return getattr(self.parse(completion, last=True), self.answer_field, None)
        texts = (self.text_of(one) for one in reversed(self.get_assistant_messages(completion)))
        answers = (getattr(self.parse(text), self.answer_field, None) for text in texts)
        return next((one for one in answers if one is not None), None)

    def format_score(self, text):
        """Return 0.2, plus 0.4 times the fraction of fields in the text, plus 0.2 each for a first and a last tag."""
        parsed = self.parse(text)
        mentioned = [[tag for tag in tags if f"<{tag}>" in text or f"</{tag}>" in text] for tags in self._fields]
        complete = any(getattr(parsed, tag) is not None for tags in self._fields for tag in tags)
        share = sum(map(bool, mentioned)) / len(self._fields) if complete else 0.0
        starts = any(text.strip().startswith(f"<{tag}>") for tag in self._fields[0])
        ends = any(text.strip().endswith(f"</{tag}>") for tag in self._fields[-1])
        return 0.4 * share + 0.2 + 0.2 * starts + 0.2 * ends

    def get_fields(self):
        return [tags[0] for tags in self._fields]

    def get_format_str(self):
        """Return a string that shows the expected tags."""
        shown = (f"[ {' | '.join(tags)} ]" if len(tags) > 1 else tags[0] for tags in self._fields)
        return "\n".join(f"<{one}>\n...\n</{one}>" for one in shown)

    def format(self, **values):
        """Return a string with these values in their tags."""
        parts = []
        for tags in self._fields:
            value = next((values[tag] for tag in tags if values.get(tag) is not None), None)
            if value is None:
                raise ValueError(f"Missing value for field '{tags[0]}' (allowed: {tags})")
            parts.append(f"<{tags[0]}>\n{value}\n</{tags[0]}>")
        return "\n".join(parts)
