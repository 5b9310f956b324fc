"""A workspace can have only a limited number of slots at a time, and each slot is free again after its use."""

from contextlib import ExitStack

import pytest

from evaluator_host.engine.system.turns import Shares
from evaluator_host.types.errors import Busy


def held(shares: Shares, workspace: str, stack: ExitStack) -> int:
    """Take slots until none is free, keep them until the stack is closed, and return how many the workspace got."""
    count = 0
    try:
        while True:
            stack.enter_context(shares.hold(workspace))
            count += 1
    except Busy:
        return count


def test_slots_are_free_again_when_their_blocks_end() -> None:
    shares = Shares(16, "requests")
    for _ in range(3):
        with ExitStack() as stack:
            assert held(shares, "alone", stack) == 16
    for _ in range(3):
        with ExitStack() as stack:
            stack.enter_context(shares.hold("other"))
            assert held(shares, "alone", stack) == 12
            assert held(shares, "third", stack) == 3


def test_a_block_that_fails_frees_its_slot() -> None:
    shares = Shares(1, "requests")
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), shares.hold("alone"):
            raise ZeroDivisionError
