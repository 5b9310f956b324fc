"""What a set of pins means for this host: which packages are meant, for which runtime, and what a bad pin should be."""

from collections.abc import Sequence
from dataclasses import replace

import anyio.to_thread

from evaluator_host.environments.targets import target_for
from evaluator_host.errors import InvalidPin
from evaluator_host.model import Language
from evaluator_host.packages.imports import exact_pins_for
from evaluator_host.packages.index import IndexSettings
from evaluator_host.packages.locked import Target
from evaluator_host.packages.pins import Pin, RawPin, parse
from evaluator_host.packages.suggest import TIMEOUT_S, suggest


class Asking:
    """Reads pins, and asks the index for those that were meant.

    Args:
      index: Where packages come from.
      backend: Name of the sandbox backend, whose runtime packages are for.
    """

    def __init__(self, index: IndexSettings, backend: str) -> None:
        # Not the downloads of builds: those may be another user's, whose tools refuse files of this one.
        self._index = replace(index, cache_dir=index.cache_dir.with_name("lookups"))
        self._backend = backend

    async def parse(self, raw: Sequence[RawPin], language: Language) -> tuple[Pin, ...]:
        """Read pins.

        Raises:
          InvalidPin: a pin is not exact; each hint is the pin that was probably meant.
        """
        try:
            return await anyio.to_thread.run_sync(parse, raw, language)
        except InvalidPin as error:
            target = self.target(language)
            problems = await suggest(error.problems, raw, language, target=target, index=self._index)
            raise InvalidPin(error.detail, problems=problems) from error

    async def pins_for(self, modules: Sequence[str], language: Language) -> list[str | None]:
        """Return the pin that each import which nothing provides probably needs."""
        index = replace(self._index, timeout_s=TIMEOUT_S)
        return await exact_pins_for(modules, language, target=self.target(language), index=index)

    def target(self, language: Language) -> Target:
        """Return the runtime that sets of a language are for."""
        return target_for(self._backend, language)
