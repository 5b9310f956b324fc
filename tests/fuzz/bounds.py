"""Limits for the number and size of the random cases that the tests try."""

from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st


def scaled(examples: int) -> int:
    """Return how many of these examples to try with Hypothesis's current profile; the default profile tries all."""
    return max(1, examples * settings.default.max_examples // 100)


def bounded(examples: int, *, shrink: bool = True) -> settings:
    """Return a decorator that makes a test try this many examples; without `shrink`, failures are not simplified."""
    phases = (Phase.explicit, Phase.generate, *([Phase.shrink] if shrink else []))
    return settings(max_examples=scaled(examples), phases=phases)


TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=40)
"""Any string, even with unpaired surrogates."""
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
LONG = st.integers(min_value=-(10**40), max_value=10**40)
JSON = st.recursive(
    st.none() | st.booleans() | LONG | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(TEXT, inner, max_size=6),
    max_leaves=30,
)

SMALL = (
    st.none()
    | st.booleans()
    | LONG
    | TEXT
    | st.lists(LONG | TEXT, max_size=2)
    | st.dictionaries(TEXT, TEXT, max_size=2)
)
"""A few small values of each kind, for cases that combine many values."""


def nested(depth: int, leaf: Any, *, key: str | None = None) -> Any:
    """Return `leaf` inside `depth` nested objects with this key, or inside nested lists if `key` is None."""
    for _ in range(depth):
        leaf = [leaf] if key is None else {key: leaf}
    return leaf


def chunked(data: bytes, sizes: list[int]) -> list[bytes]:
    """Split the bytes into pieces of these sizes, using the sizes again and again; without sizes, return one piece."""
    pieces, at = [], 0
    while at < len(data):
        size = sizes[len(pieces) % len(sizes)] if sizes else len(data)
        pieces.append(data[at : at + size])
        at += size
    return pieces
