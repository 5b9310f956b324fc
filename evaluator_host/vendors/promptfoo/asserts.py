"""Python programs for promptfoo's assertions that only compare the output with a value.

Each program reads the value from `context["config"]["value"]`, so that one evaluator serves all tests. Source of the
rules: promptfoo 0.121.20, src/assertions.
"""

from string import Template
from typing import Final

NEGATION: Final = "not-"

_PROGRAM: Final = Template('''"""The assert `$type` of promptfoo."""

import json
import re


def shown(value):
    """A value as promptfoo writes it in text."""
    if isinstance(value, bool) or value is None or isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def parsed(text):
    """The JSON value of a text; an exception when it has none."""
    return json.loads(text)

$helper

def get_assert(output, context):
    config = context.get("config") or {}
    value = config.get("value")$required
    text = output if isinstance(output, str) else shown(output)
    found = $condition
    passed = $passed
    wanted = "" if value is None else f": {shown(value)}"
    reason = "Assertion passed" if passed else f"the output fails `$type`{wanted}"
    return {"pass": passed, "score": 1.0 if passed else 0.0, "reason": reason}
''')
_REQUIRED: Final = """
    if "value" not in config:
        raise ValueError("the row has no value for this assert: its criteria are {'config': {'value': …}}")"""
_FILLED: Final = '''

def filled(value, *kinds):
    """The value as a text; an exception if it is of another kind, or an empty text, which every output contains."""
    if value == "" or isinstance(value, bool) or not isinstance(value, kinds):
        raise ValueError(f"this assert cannot use the value {shown(value)!r}")
    return shown(value)
'''
_LISTED: Final = (
    _FILLED
    + r'''

PART = re.compile(r'[\s,]*(?:"((?:\\["\\]|""|\\(?!["\\])|[^"\\])*)"\s*(?:,|\Z)|([^\s",][^,]*)|\Z)')


def listed(value):
    """A list of texts: a list, or a text with commas; in such a text, a part with commas is in quotes."""
    if isinstance(value, list):
        return [shown(one) for one in value]
    text, at, parts = filled(value, str), 0, []
    while at < len(text):
        part = PART.match(text, at)
        if part is None:
            raise ValueError(f"each quote in the value {text!r} must end, with a comma after it")
        at, (quoted, plain) = part.end(), part.groups()
        if quoted is not None:
            parts.append(re.sub(r'\\(["\\])|""', lambda found: found[1] or '"', quoted))
        elif plain is not None:
            parts.append(plain.strip())
    return parts
'''
)
_SAME: Final = '''

def same(output, text, value):
    """Whether the output is the value: as JSON where the value is an object, else as text."""
    if not isinstance(value, (dict, list)):
        return text == shown(value)
    if isinstance(output, str):
        try:
            output = parsed(output)
        except ValueError:
            return False
    return output == value
'''
_IS_JSON: Final = """

def is_json(text):
    try:
        parsed(text)
    except ValueError:
        return False
    return True
"""
_HAS_JSON: Final = """

def has_json(text):
    decoder = json.JSONDecoder()
    for place in (at for at, one in enumerate(text) if one in "{["):
        try:
            decoder.raw_decode(text, place)
        except ValueError:
            continue
        return True
    return False
"""
_DISTANCE: Final = '''

def distance(one, other):
    """The number of characters to insert, delete or replace."""
    row = list(range(len(other) + 1))
    for at, character in enumerate(one, 1):
        before, row[0] = row[0], at
        for place, theirs in enumerate(other, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (character != theirs))
    return row[-1]
'''
_FITS_COUNT: Final = '''

def fits_count(text, value):
    """Whether the number of words is the value, or lies between its `min` and `max`."""
    words = len(text.split())
    if not isinstance(value, dict):
        return words == int(value)
    return value.get("min", 0) <= words <= value.get("max", words)
'''
_CONDITIONS: Final = {
    "equals": ("same(output, text, value)", _SAME),
    "contains": ("filled(value, str, int, float) in text", _FILLED),
    "icontains": ("filled(value, str, int, float).lower() in text.lower()", _FILLED),
    "contains-any": ("any(one in text for one in listed(value))", _LISTED),
    "contains-all": ("all(one in text for one in listed(value))", _LISTED),
    "icontains-any": ("any(one.lower() in text.lower() for one in listed(value))", _LISTED),
    "icontains-all": ("all(one.lower() in text.lower() for one in listed(value))", _LISTED),
    "starts-with": ("text.startswith(filled(value, str))", _FILLED),
    "regex": ("re.search(filled(value, str), text) is not None", _FILLED),
    "levenshtein": ('distance(text, shown(value)) <= config.get("threshold", 5)', _DISTANCE),
    "word-count": ("fits_count(text, value)", _FITS_COUNT),
    "is-json": ("is_json(text)", _IS_JSON),
    "contains-json": ("has_json(text)", _HAS_JSON),
}
WITHOUT_VALUE: Final = frozenset({"is-json", "contains-json"})
"""Types that run only without a value, because the value would be a schema, which only a package can check."""
WITH_THRESHOLD: Final = frozenset({"levenshtein"})
"""Types whose threshold does not apply to the score."""


def program(type_: str) -> str | None:
    """Return the Python program for an assertion type such as `contains` or `not-contains`; None if there is none."""
    plain = type_.removeprefix(NEGATION)
    if plain not in _CONDITIONS:
        return None
    condition, helper = _CONDITIONS[plain]
    return _PROGRAM.substitute(
        type=type_,
        condition=condition,
        helper=helper,
        required="" if plain in WITHOUT_VALUE else _REQUIRED,
        passed="found" if plain == type_ else "not found",
    )


_PACKAGE: Final = "the assert needs a package: write a python assert, and pin {}"
_PARSED: Final = "the assert is not available: write a python assert that parses the output with {}"
_SPANS: Final = "the assert is not available: write a python assert that reads the spans in context['trace']"
REASONS: Final = {
    "latency": "the host does not record the time of an output: read it from `trace` in an evaluator of your own",
    "cost": "the host does not record the cost of an output: read it from `trace` in an evaluator of your own",
    "perplexity": "the host has no log probabilities",
    "webhook": "evaluators have no network: score in an evaluator of your own instead",
    "human": "only people can score it",
    "select-best": "the assert compares the outputs of several models, but a row has one output",
    "max-score": "the assert compares the outputs of several models, but a row has one output",
    "classifier": "the assert asks a classification model: register the model, and call it in an evaluator of your own",
    "moderation": "the assert asks a moderation model: write its categories as an llm-rubric instead",
    "guardrails": "rows do not contain the verdicts of a provider's guardrails: write an llm-rubric instead",
    "conversation-relevance": "the assert asks a model about each message: write an llm-rubric instead",
    "search-rubric": "the assert asks a model that searches the web: write an llm-rubric instead",
    "pi": "the assert asks the service of its vendor: write an llm-rubric instead",
    "is-refusal": "the host has no list of words for refusals: compare them in a python assert, or write an llm-rubric",
    "bleu": _PACKAGE.format("sacrebleu"),
    "gleu": _PACKAGE.format("nltk"),
    "meteor": _PACKAGE.format("nltk"),
    "rouge-n": _PACKAGE.format("rouge-score"),
    "is-sql": _PACKAGE.format("sqlglot"),
    "contains-sql": _PACKAGE.format("sqlglot"),
    "is-xml": _PARSED.format("xml.etree"),
    "contains-xml": _PARSED.format("xml.etree"),
    "is-html": _PARSED.format("html.parser"),
    "contains-html": _PARSED.format("html.parser"),
    "is-valid-function-call": _PACKAGE.format("jsonschema"),
    "is-valid-openai-function-call": _PACKAGE.format("jsonschema"),
    "is-valid-openai-tools-call": _PACKAGE.format("jsonschema"),
    "finish-reason": "the assert is not available: read context['providerResponse'] in a python assert",
    "perplexity-score": "the host has no log probabilities",
    "trace-span-count": _SPANS,
    "trace-span-duration": _SPANS,
    "trace-error-spans": _SPANS,
    "ruby": "Ruby does not run here: write a python or javascript assert instead",
}
"""Why the other types are not imported."""
UNKNOWN: Final = "there is no evaluator for this type of assert: write it as a judge, see docs/models.md"
