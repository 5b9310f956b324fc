"""Parses the start-up arguments of the runner (`runtimes/PROTOCOL.md`)."""

from __future__ import annotations


class Options:
    """The start-up arguments, in which the sandbox backend describes the sandbox.

    Attributes:
      drop_to: (uid, gid) to switch to, or None.
      data: Directory of the evaluator's data files, or None.
      packages: Directory of the installed package set, or None.
      restricted: Directory that holds RestrictedPython, or None.
      sdk: Directory of the light modules that replace an SDK, or None.
      private_tmp: Whether /tmp and /dev/shm belong to this sandbox alone, so that they are emptied after each row.
      node: Whether rows may start Node, which reserves more memory than it uses.
      limit_processes: Whether the user id belongs to this sandbox alone, so that RLIMIT_NPROC can limit its processes.
    """

    __slots__ = ("data", "drop_to", "limit_processes", "node", "packages", "private_tmp", "restricted", "sdk")

    def __init__(self, arguments: list[str]) -> None:
        self.drop_to: tuple[int, int] | None = None
        self.data: str | None = None
        self.packages: str | None = None
        self.restricted: str | None = None
        self.sdk: str | None = None
        self.private_tmp = False
        self.limit_processes = False
        self.node = False
        rest = list(arguments)
        while rest:
            self._take(rest.pop(0), rest)

    def _take(self, name: str, rest: list[str]) -> None:
        if name == "--private-tmp":
            self.private_tmp = True
        elif name == "--limit-processes":
            self.limit_processes = True
        elif name == "--node":
            self.node = True
        elif name not in {"--data", "--drop-to", "--packages", "--restricted", "--sdk"} or not rest:
            raise SystemExit(f"runner: the argument {name!r} is unknown, or lacks its value")
        elif name == "--drop-to":
            uid, _, gid = rest.pop(0).partition(":")
            self.drop_to = (int(uid), int(gid))
        else:
            setattr(self, name[2:], rest.pop(0))
