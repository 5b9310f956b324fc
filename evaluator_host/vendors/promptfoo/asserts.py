"""JavaScript programs for promptfoo's assertions that only compare the output with a value.

promptfoo itself is JavaScript, so only JavaScript has its regular expressions, its JSON, and its numbers as text. Each
program reads the value from `context.config.value`, so that one evaluator serves all tests. Source of the rules:
promptfoo 0.121.20, src/assertions.
"""

from string import Template
from typing import Final

NEGATION: Final = "not-"

_PROGRAM: Final = Template("""/** The assert `$type` of promptfoo. */

/** A value as promptfoo writes it in text. */
function shown(value) {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
$helper
export function get_assert(output, context) {
  const config = context.config ?? {};
  const value = config.value;$required
  const text = typeof output === 'string' ? output : JSON.stringify(output);
  const found = $condition;
  const pass = $passed;
  const wanted = value === undefined || value === null ? '' : `: $${shown(value)}`;
  return { pass, score: pass ? 1 : 0, reason: pass ? 'Assertion passed' : `the output fails \\`$type\\`$${wanted}` };
}
""")
_REQUIRED: Final = """
  if (value === undefined) {
    throw new Error("the row has no value for this assert: its criteria are {'config': {'value': …}}");
  }"""
_FILLED: Final = """
/** The value as a text; an exception if it is of another type, or an empty text, which every output contains. */
function filled(value, ...types) {
  if (value === '' || !types.includes(typeof value)) {
    throw new Error(`this assert cannot use the value ${JSON.stringify(value)}`);
  }
  return String(value);
}
"""
_LISTED: Final = (
    _FILLED
    + r"""
const PART = /[\s,]*(?:"((?:\\["\\]|""|\\(?!["\\])|[^"\\])*)"\s*(?:,|$)|([^\s",][^,]*)|$)/y;

/** A list of texts: a list, or a text with commas; in such a text, a part with commas is in quotes. */
function listed(value) {
  if (Array.isArray(value)) return value.map(String);
  const text = filled(value, 'string');
  const parts = [];
  PART.lastIndex = 0;
  while (PART.lastIndex < text.length) {
    const part = PART.exec(text);
    if (part === null) {
      throw new Error(`each quote in the value ${JSON.stringify(text)} must end, with a comma after it`);
    }
    if (part[1] !== undefined) parts.push(part[1].replace(/\\(["\\])|""/g, (all, escaped) => escaped ?? '"'));
    else if (part[2] !== undefined) parts.push(part[2].trim());
  }
  return parts;
}
"""
)
_SAME: Final = """
/** Whether the output is the value: as JSON where the value is an object, else as text. */
function same(text, value) {
  if (typeof value !== 'object') return text === String(value);
  try {
    return alike(value, JSON.parse(text));
  } catch {
    return false;
  }
}

/** Whether two JSON values are equal; unlike numbers, true is not 1. */
function alike(one, other) {
  const plain = [one, other].some((value) => typeof value !== 'object' || value === null);
  if (plain) return Object.is(one, other);
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  return names.every((name) => Object.hasOwn(other, name) && alike(one[name], other[name]));
}
"""
_IS_JSON: Final = """
function isJson(text) {
  try {
    JSON.parse(text);
  } catch {
    return false;
  }
  return true;
}
"""
_HAS_JSON: Final = """
const LONGEST = 100_000;

/** Whether a text contains a JSON object; an exception where promptfoo would read braces as YAML. */
function hasJson(text) {
  let unclear = null;
  for (let at = text.indexOf('{'); at >= 0; at = text.indexOf('{', at + 1)) {
    const part = closed(text, at);
    try {
      JSON.parse(part);
      return true;
    } catch {
      unclear ??= part;
    }
  }
  if (unclear === null) return false;
  throw new Error(`promptfoo reads this as YAML, and may find an object in it: ${unclear.slice(0, 60)}`);
}

/** The text from a brace to the brace that closes it, or to the end. */
function closed(text, from) {
  let open = 0;
  const end = Math.min(text.length, from + LONGEST);
  for (let at = from; at < end; at++) {
    if (text[at] === '{') open += 1;
    else if (text[at] === '}') open -= 1;
    if (open === 0) return text.slice(from, at + 1);
  }
  return text.slice(from, end) + '}'.repeat(open);
}
"""
_DISTANCE: Final = """
/** The number of characters to insert, delete or replace. */
function distance(one, other) {
  const row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let at = 1; at <= one.length; at++) {
    let before = row[0];
    row[0] = at;
    for (let place = 1; place <= other.length; place++) {
      const next = Math.min(row[place] + 1, row[place - 1] + 1, before + (one[at - 1] === other[place - 1] ? 0 : 1));
      before = row[place];
      row[place] = next;
    }
  }
  return row[other.length];
}
"""
_FITS_COUNT: Final = """
/** Whether the number of words is the value, or lies between its `min` and `max`. */
function fitsCount(text, value) {
  const words = text.split(/\\s+/).filter((word) => word !== '').length;
  if (/^(number|string) \\d+$/.test(`${typeof value} ${value}`)) return words === Number(value);
  const { min, max } = value ?? {};
  if (Array.isArray(value) || (min ?? max) === undefined) {
    throw new Error(`this assert cannot use the value ${JSON.stringify(value)}`);
  }
  return (min ?? 0) <= words && words <= (max ?? words);
}
"""
_CONDITIONS: Final = {
    "equals": ("same(text, value)", _SAME),
    "contains": ("text.includes(filled(value, 'string', 'number'))", _FILLED),
    "icontains": ("text.toLowerCase().includes(filled(value, 'string', 'number').toLowerCase())", _FILLED),
    "contains-any": ("listed(value).some((one) => text.includes(one))", _LISTED),
    "contains-all": ("listed(value).every((one) => text.includes(one))", _LISTED),
    "icontains-any": ("listed(value).some((one) => text.toLowerCase().includes(one.toLowerCase()))", _LISTED),
    "icontains-all": ("listed(value).every((one) => text.toLowerCase().includes(one.toLowerCase()))", _LISTED),
    "starts-with": ("text.startsWith(filled(value, 'string'))", _FILLED),
    "regex": ("new RegExp(filled(value, 'string')).test(text)", _FILLED),
    "levenshtein": ("distance(text, shown(value)) <= (config.threshold ?? 5)", _DISTANCE),
    "word-count": ("fitsCount(text, value)", _FITS_COUNT),
    "is-json": ("isJson(text)", _IS_JSON),
    "contains-json": ("hasJson(text)", _HAS_JSON),
}
WITHOUT_VALUE: Final = frozenset({"is-json", "contains-json"})
"""Types that run only without a value: the value would be a schema, and only a package can check a schema."""
WITH_THRESHOLD: Final = frozenset({"levenshtein"})
"""Types whose threshold does not apply to the score."""


def program(type_: str) -> str | None:
    """Return the JavaScript program for an assertion type such as `not-contains`; None if the type has no program."""
    plain = type_.removeprefix(NEGATION)
    if plain not in _CONDITIONS:
        return None
    condition, helper = _CONDITIONS[plain]
    return _PROGRAM.substitute(
        type=type_,
        condition=condition,
        helper=helper,
        required="" if plain in WITHOUT_VALUE else _REQUIRED,
        passed="found" if plain == type_ else "!found",
    )


_PACKAGE: Final = "the assert needs a package: write a python assert, and pin {}"
_PARSED: Final = "the assert is not available: write a python assert that parses the output with {}"
_SPANS: Final = "the assert is not available: write a python assert that reads the spans in context['trace']"
REASONS: Final = {
    "latency": "the host does not record the time of an output: read it from `trace` in your own evaluator",
    "cost": "the host does not record the cost of an output: read it from `trace` in your own evaluator",
    "perplexity": "the host has no log probabilities",
    "webhook": "evaluators have no network: score in your own evaluator instead",
    "human": "only people can score this assert",
    "select-best": "the assert compares the outputs of several models, but a row has one output",
    "max-score": "the assert compares the outputs of several models, but a row has one output",
    "classifier": "the assert asks a classification model: register the model, and call it in your own evaluator",
    "moderation": "the assert asks a moderation model: write its categories as an llm-rubric instead",
    "guardrails": "rows do not contain the verdicts of a provider's guardrails: write an llm-rubric instead",
    "conversation-relevance": "the assert asks a model about each message: write an llm-rubric instead",
    "search-rubric": "the assert asks a model that searches the web: write an llm-rubric instead",
    "pi": "the assert asks the service of its vendor: write an llm-rubric instead",
    "is-refusal": "the host has no list of refusals: use your own list in a python assert, or write an llm-rubric",
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
