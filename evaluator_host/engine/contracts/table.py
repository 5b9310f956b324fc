"""Finds dialects by `Contract`, in a folder here or in a plugin's folder.

The file `dialect.py` in the folder defines `DIALECT`.
"""

from functools import cache
from importlib import import_module

from evaluator_host.engine.contracts.base import Dialect
from evaluator_host.types.evaluator import Contract, Evaluator, Json
from evaluator_host.types.plugin_folders import contract_folder


@cache
def dialect_of(contract: Contract) -> Dialect:
    """Return the dialect of a contract; the contract must not be `auto`."""
    dialect: Dialect = import_module(f"{contract_folder(contract).package}.dialect").DIALECT
    return dialect


@cache
def all_dialects() -> tuple[Dialect, ...]:
    """Return every dialect, in the order of `Contract`."""
    return tuple(dialect_of(contract) for contract in Contract if contract is not Contract.AUTO)


def has_corpus_scores(contract: Contract | None) -> bool:
    """Return whether evaluators of a contract may score all rows together; False if the contract is not known yet."""
    return contract is not None and dialect_of(contract).bind_one_of_many is not None


def may_score_together(evaluator: Evaluator) -> bool:
    """Return whether an evaluator may score all rows together.

    With contract `auto`, return True if this is possible in any dialect of its language: the contract is known only
    after a sandbox has loaded the code.
    """
    declared = evaluator.contract is not Contract.AUTO
    possible = (dialect_of(evaluator.contract),) if declared else all_dialects()
    return any(one.bind_one_of_many is not None and evaluator.language in one.languages for one in possible)


def name_in_config(config: dict[str, Json]) -> str | None:
    """Return an evaluator's name from its configuration in any dialect, or None if it contains no name."""
    names = (one.name_in_config(config) for one in all_dialects() if one.name_in_config is not None)
    return next((name for name in names if name is not None), None)
