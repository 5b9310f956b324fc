"""Searches text columns, ignoring upper and lower case, with the same result on SQLite and PostgreSQL."""

from typing import Any

from sqlalchemy import ColumnElement, Text, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class _Lower(FunctionElement[str]):
    """SQL for a column in lower case. The other two arguments are the letters beyond ASCII, upper and lower."""

    inherit_cache = True
    type = Text()


@compiles(_Lower)
def _lower(element: Any, compiler: Any, **more: Any) -> str:
    # on every SQLite connection, `lower` is a Python function
    return f"lower({compiler.process(next(iter(element.clauses)), **more)})"


@compiles(_Lower, "postgresql")
def _lower_of_postgresql(element: Any, compiler: Any, **more: Any) -> str:
    column, uppers, lowers = (compiler.process(one, **more) for one in element.clauses)
    # in a database with the locale C, `lower` changes only the letters of ASCII
    return f"translate(lower({column}), CAST({uppers} AS TEXT), CAST({lowers} AS TEXT))"


def contains_text(column: Any, text: str) -> ColumnElement[bool]:
    """Return the SQL condition that a column contains `text`, ignoring upper and lower case."""
    pairs = {one.upper(): one.lower() for one in text}
    others = {upper: lower for upper, lower in pairs.items() if not upper.isascii() and len(upper) == len(lower) == 1}
    lowered = _Lower(column, literal("".join(others)), literal("".join(others.values())))
    found: ColumnElement[bool] = lowered.contains(text.lower(), autoescape=True)
    return found
