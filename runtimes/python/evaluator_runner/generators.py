"""Keeps random seeds that code sets while it loads; generators without such a seed give new numbers in each row.

Rows are forks of the loaded process. Without this module, an unseeded generator would repeat its numbers in every row,
and the callback of `random`, which reseeds after a fork, would discard a seed. This module handles `random`,
`numpy.random` and `torch`. It watches them from their import on, because the state of a generator does not show where
its seed came from.
"""

from __future__ import annotations

import _weakref
import gc
import os
import sys

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_ENTROPY_BYTES, _WORDS = 16, range(0, 16, 4)
_urandom, _byteorder, _modules = os.urandom, sys.byteorder, sys.modules


renewals: list[tuple[Callable[..., Any], Any]] = []
"""The calls that `renew` makes. `settle` sets them if a module with generators was loaded."""


class _Loader:
    """Runs a module with the module's own loader, then watches its generators."""

    def __init__(self, loader: Any, watch: Callable[[Any], None]) -> None:
        self._loader = loader
        self._watch = watch

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            self._watch(module)
        except Exception:  # noqa: BLE001, S110 - this version of the package does not have these names
            pass


class _RandomLoader(_Loader):
    """Runs module `random` without its callback, which would discard the code's seed in each row."""

    def exec_module(self, module: Any) -> None:
        register = os.register_at_fork
        os.register_at_fork = lambda **_callbacks: None
        try:
            super().exec_module(module)
        finally:
            os.register_at_fork = register
        plain, hidden = _watched.plain_seed, module._inst  # noqa: SLF001 - the generator that its functions use
        register(after_in_child=lambda: None if _watched.forks_rows else plain(hidden))


class _Watch:
    """The random generators of this process.

    Attributes:
      forks_rows: Whether a fork of this process becomes a row.
      plain_seed: The method `seed` of `random.Random`, unchanged.
    """

    def __init__(self) -> None:
        self.forks_rows = False
        self.plain_seed: Any = None
        self._unseeded: dict[int, Any] = {}  # objects of `random.Random` without a seed, as weak references by id
        self._entropy: set[int] = set()  # entropy that numpy's unseeded generators took from the system
        self._numpy_seeded: bool | None = None  # whether the code set numpy's seed; None if it did not try
        self._torch_seed: int | None = None
        self._undo: list[tuple[Any, str, Any]] = []
        self._loaders = {
            "random": (_RandomLoader, self._watch_random),
            "numpy.random.bit_generator": (_Loader, self._watch_entropy),
            "numpy.random.mtrand": (_Loader, self._watch_numpy),
            "torch": (_Loader, self._watch_torch),
        }

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self._loaders:
            return None
        make, watch = self._loaders[name]
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = make(spec.loader, watch)  # type: ignore[assignment]
                return spec
        return None

    def _watch_random(self, module: Any) -> None:
        kind, refer, unseeded = module.Random, _weakref.ref, self._unseeded
        plain, plain_state = kind.seed, kind.setstate
        self.plain_seed = plain

        def seed(self: Any, a: Any = None, version: int = 2) -> None:
            plain(self, a, version)
            if a is None:
                unseeded[id(self)] = refer(self)
            else:
                unseeded.pop(id(self), None)

        def setstate(self: Any, state: Any) -> None:
            plain_state(self, state)
            unseeded.pop(id(self), None)

        hidden = module._inst  # noqa: SLF001
        unseeded[id(hidden)] = refer(hidden)
        for watched in (seed, setstate):
            name = watched.__name__
            self._replace(kind, name, watched)
            self._replace(module, name, getattr(hidden, name))

    def _watch_entropy(self, module: Any) -> None:
        plain, taken = module.randbits, self._entropy

        def randbits(k: int) -> int:
            bits: int = plain(k)
            taken.add(bits)
            return bits

        self._replace(module, "randbits", randbits)

    def _watch_numpy(self, module: Any) -> None:
        plain, plain_state = module.seed, module.set_state

        def seed(seed: Any = None) -> None:
            plain(seed)
            self._numpy_seeded = seed is not None

        def set_state(state: Any) -> None:
            plain_state(state)
            self._numpy_seeded = True

        self._replace(module, "seed", seed)
        self._replace(module, "set_state", set_state)

    def _watch_torch(self, module: Any) -> None:
        self._torch_seed = module.initial_seed()

    def _replace(self, owner: Any, name: str, function: Any) -> None:
        plain = getattr(owner, name)
        for shown in ("__name__", "__qualname__", "__module__", "__doc__"):
            try:
                setattr(function, shown, getattr(plain, shown))
            except AttributeError:  # bound methods do not have these attributes
                break
        self._undo.append((owner, name, plain))
        setattr(owner, name, function)

    def settle(self) -> None:
        """Record which generators are unseeded, and stop watching, so that rows run the modules' own functions."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self.forks_rows = True
        if self.plain_seed is not None:
            renewals.append((_Watch.stop_forking, self))
        renewals.extend([(self.plain_seed, one) for ref in self._unseeded.values() if (one := ref()) is not None])
        renewals.extend([(_renew_bits, one) for one in self._unseeded_bits()])
        torch = _modules.get("torch")
        if torch is not None and torch.initial_seed() == self._torch_seed:
            renewals.append((type(torch.default_generator).seed, torch.default_generator))
        for owner, name, plain in reversed(self._undo):
            setattr(owner, name, plain)
        self._undo.clear()

    def _unseeded_bits(self) -> list[Any]:
        """Return numpy's bit generators that took their seed from the system."""
        mtrand, bits = _modules.get("numpy.random.mtrand"), _modules.get("numpy.random.bit_generator")
        if not self._entropy or mtrand is None or bits is None:
            return []
        default = mtrand._rand._bit_generator  # noqa: SLF001 - the generator behind numpy.random's functions
        # the first entropy belongs to numpy's default generator, which is created when numpy is imported
        if len(self._entropy) == 1:
            return [] if self._numpy_seeded or not self._took_entropy(default) else [default]
        kind = bits.BitGenerator
        every = {id(one): one for one in gc.get_objects() if issubclass(type(one), kind)}
        found = [one for one in every.values() if one is not default and self._took_entropy(one)]
        if not self._numpy_seeded and (self._numpy_seeded is False or self._took_entropy(default)):
            found.append(default)
        return found

    def _took_entropy(self, bits: Any) -> bool:
        # before numpy 1.25, the name was `_seed_seq`
        sequence = getattr(bits, "seed_seq", None) or getattr(bits, "_seed_seq", None)
        return getattr(sequence, "entropy", None) in self._entropy

    def stop_forking(self) -> None:
        """Record that this process is a row."""
        self.forks_rows = False


def renew() -> None:
    """Let the unseeded generators give new numbers in this row."""
    for renewal, generator in renewals:
        renewal(generator)


def _renew_bits(bits: Any) -> None:
    if hasattr(bits, "_legacy_seeding"):  # a faster way, which only the generator MT19937 has
        entropy = _urandom(_ENTROPY_BYTES)
        bits._legacy_seeding([int.from_bytes(entropy[at : at + 4], _byteorder) for at in _WORDS])  # noqa: SLF001
    else:
        bits.state = type(bits)().state


_watched = _Watch()
settle = _watched.settle


def watch() -> None:
    """Watch the generators of modules that are imported from now on, until `settle`."""
    sys.meta_path.insert(0, _watched)
