"""A stand-in for a host's package sets, for tests in which no evaluator pins a package."""

from collections.abc import Mapping, Sequence
from typing import NoReturn

from evaluator_host.engine.packages.providers import ImportedModule, Provider
from evaluator_host.types.errors import PackagesFailed
from evaluator_host.types.evaluator import Language


class NoPackages:
    """A stand-in for `Environments` on a host where nothing is installed and no index has packages."""

    @property
    def queries(self) -> "NoPackages":
        return self

    async def providers(
        self, modules: Sequence[ImportedModule], language: Language, python: str | None, *, workspace: str
    ) -> list[Provider]:
        return [Provider()] * len(modules)

    async def pins_together(
        self,
        pins: Sequence[str],
        new: Sequence[str],
        language: Language,
        python: str | None,
        *,
        ranges: Mapping[str, str],
        workspace: str,
    ) -> list[str]:
        return list(new)

    async def python(self, asked: str | None, *, field: str = "evaluator.python") -> str | None:
        return None

    def target(self, language: Language, python: str | None = None) -> NoReturn:
        raise PackagesFailed("nothing can be installed here")
