"""The names that people give parameters and columns, and what they mean: inputs, outputs, expected answer."""

import re
from collections.abc import Iterable
from typing import Final

EXPECTED: Final = "the expected answer"
OTHER: Final = "something else"
_WORDS: Final = {
    "inputs": "input inputs question query prompt",
    "outputs": "output outputs completion completions response responses prediction predicted pred generated "
    "generation actual actualoutput modeloutput outputtext taskoutput agentoutput solutionstr candidate hypothesis "
    "finaloutput finalanswer actualanswer modelanswer modelresponse agentresponse botresponse llmoutput llmresponse "
    "generatedtext generatedanswer predictedanswer responsetext ypred",
    EXPECTED: "expected expectedoutput expectedoutputs expectedanswer expectedresponse expectation expectations "
    "target reference references referenceoutput referenceoutputs referenceanswer groundtruth groundtruths truth "
    "label labels gold goldanswer golden correctanswer correct answer answers ideal solution wanted gt ref",
    "trace": "trace traces span spans",
    OTHER: "metadata meta example run context ctx config criteria state turn event instance attachments tools params "
    "options opts",
}
# Columns that hold the expected answer and can hold nothing else; a `label` or `target` may be anything.
_NAMES_OF_TRUTH: Final = frozenset(
    [
        *("expected", "expectation", "expectations"),
        *(
            first + second
            for first in ("expected", "reference", "correct", "gold", "golden")
            for second in ("output", "outputs", "answer", "answers", "response", "responses")
        ),
        *("reference", "groundtruth", "groundtruths"),
    ]
)
_TRUTHS: Final = (
    "expected expectedoutput expectedanswer reference referenceanswer referenceoutput groundtruth truth gold golden "
    "label target correctanswer correct ideal gt"
)
ALIKE: Final = tuple(
    frozenset(words.split())
    for words in (
        _TRUTHS,
        "question query prompt input userinput instruction",
        "context contexts documents passages retrieved",
        "id rowid key",
    )
)
"""Groups of names: columns with names in the same group usually hold the same values."""
_MEANING: Final = {word: meaning for meaning, words in _WORDS.items() for word in words.split()}
# words that show that a longer name means the expected answer
_PARTS: Final = frozenset(["expected", "gold", "golden", "truth", "gt", "wanted"])
_PART: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def plain(name: str) -> str:
    """Return a name in lower case without separators: `Model_Output` becomes `modeloutput`."""
    return "".join(filter(str.isalnum, name)).lower()


def names_truth(column: str) -> bool:
    """Return whether a column with this name can only contain the expected answer."""
    return plain(column) in _NAMES_OF_TRUTH


def meaning(name: str) -> str | None:
    """Return the probable meaning of a name: `inputs`, `outputs`, `trace`, `EXPECTED` or `OTHER`; else None."""
    found = _MEANING.get(name.lower().replace("_", ""))
    if found is None and not _PARTS.isdisjoint(part.lower() for part in _PART.findall(name)):
        return EXPECTED
    return found


def alike(name: str, columns: Iterable[str]) -> str | None:
    """Return the first column that usually has the same content as `name`: `expected` for `reference`; else None."""
    wanted = plain(name)
    words = next((one for one in ALIKE if wanted in one), frozenset())
    return next((one for one in columns if plain(one) in words), None)
