"""The commands of sandboxes: a shell and text tools.

With bubblewrap, the commands are copies of this machine's programs. The Docker image has its own programs.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from evaluator_host.types.evaluator import Language

# fmt: off
SHELL_TOOLS: Final = (
    "[", "awk", "basename", "bash", "cat", "chmod", "cmp", "comm", "cp", "cut", "date", "diff", "dirname", "echo",
    "env", "expr", "false", "find", "fold", "grep", "head", "join", "ln", "ls", "md5sum", "mkdir", "mktemp", "mv",
    "nl", "od", "paste", "printf", "pwd", "rm", "rmdir", "sed", "seq", "sh", "sha256sum", "sleep", "sort", "split",
    "stat", "tac", "tail", "tee", "test", "timeout", "touch", "tr", "true", "uname", "uniq", "wc", "xargs",
)
# fmt: on
_INSTEAD: Final = {
    "pip": "pin packages in `packages` instead of installing them",
    "npm": "pin packages in `packages` instead of installing them",
    "npx": "pin packages in `packages` instead of installing them",
    "node": "the operator can turn it on for Python with EVALUATOR_HOST_PYTHON_WITH_NODE",
}
_SOURCES: Final = ("/usr/bin", "/bin")
_NO_COMMAND: Final = re.compile(
    r"^the sandbox has no command (\S+)$"  # message of the Python runner
    r"|^spawn(?:Sync)? (\S+) ENOENT"  # message of Node
    r"|/(?:ba)?sh: (?:(?:line )?\d+: )?(\S+): (?:command )?not found"
)


def find_shell_tools() -> Iterator[tuple[str, Path]]:
    """Yield the name and the program file of each shell tool on this machine; yield nothing if it has no shell."""
    found = {name: path for name in SHELL_TOOLS if (path := shutil.which(name, path=":".join(_SOURCES))) is not None}
    if "sh" in found:
        yield from ((name, Path(path).resolve()) for name, path in found.items())


def missing_command(text: str) -> str | None:
    """Return the name of the command that a message reports as missing, or None for any other message."""
    found = _NO_COMMAND.search(text)
    return None if found is None else found[1] or found[2] or found[3]


def advice_on_command(name: str, language: Language) -> str:
    """Return advice on a command that a sandbox lacks; the advice lists the commands that the sandbox has."""
    if name in ("/bin/sh", "/bin/bash"):
        return "the host's machine has no shell that sandboxes could use: start the program itself, without a shell"
    told = f"the sandbox has no command {name}; {commands_of(language)}"
    return f"{told}; {_INSTEAD[name]}" if name in _INSTEAD else told


def commands_of(language: Language) -> str:
    """Return a sentence that lists the commands that a sandbox has."""
    own = "python3, python" if language is Language.PYTHON else "node"
    return f"it has {own}, sh and small command-line tools (cat, grep, sed, sort, find …)"
