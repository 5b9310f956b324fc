"""Runs Python as an ordinary user even if root runs the tests, because an ordinary user's sandbox differs from root's.

If root runs the tests, the interpreter, the project and its packages may be in a folder that no other user can read (a
home with mode 0700). Then they are mounted in a public place, in a mount namespace that ends with the command. Nothing
is copied, and nothing is left behind.

    output = run_as_ordinary_user("import os; print(os.geteuid())")

Pass paths that the script needs as arguments. A path below the project, the packages or a folder in `also` is
translated to a path that the ordinary user can open; every other argument is passed unchanged.
"""

import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.leftovers import RUN

PROJECT = Path(__file__).resolve().parents[1]
# folder of the environment; packages look for their programs in its `bin`
_INSTALLED = Path(sysconfig.get_path("data")).resolve()
PACKAGES = Path(sysconfig.get_path("purelib")).resolve()
UID = 54321  # the id has no entry in the table of users, because an ordinary user need not have one
# settings of hosts that are passed on from the environment of the tests
MODES = ("EVALUATOR_HOST_SANDBOX_START", "EVALUATOR_HOST_WORKERS")
_PUBLIC = (Path("/srv"), Path("/media"))  # folders in which a system keeps no programs


def run_as_ordinary_user(script: str, *arguments: str | Path, also: Sequence[Path] = (), timeout_s: float = 60) -> str:
    """Run a script as an ordinary user and return its output. The script can import the project and its packages.

    Args:
      script: Python source; `sys.argv[1:]` are the arguments.
      arguments: Arguments of the script; paths are translated.
      also: Further folders that the script may read.
      timeout_s: Time limit in seconds.

    Raises:
      AssertionError: the script failed; the message is its standard error.
    """
    command = ordinary_user_command(["-c", script, *arguments], also=also)
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def pass_as_ordinary_user(tests: Path, *, timeout_s: float = 280) -> None:
    """Run a file's tests again as an ordinary user and without conftest, except the test that calls this function.

    The calling test has `ordinary_user` in its name. If an ordinary user runs this process already, do nothing.

    Raises:
      AssertionError: a test failed or was skipped.
    """
    if os.geteuid() != 0:
        return
    options = ["-q", "--noconftest", "-p", "no:cacheprovider", "-k", "not ordinary_user"]
    command = ordinary_user_command(["-m", "pytest", *options, tests.resolve()])
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout


def ordinary_user_command(arguments: Sequence[str | Path], *, also: Sequence[Path] = ()) -> list[str]:
    """Return a command that runs Python with these arguments as an ordinary user; the caller starts the command."""
    if os.geteuid() != 0:
        path = os.pathsep.join(map(str, (PROJECT, PACKAGES)))
        return ["env", f"PYTHONPATH={path}", sys.executable, *map(str, arguments)]
    prefix = Path(sys.base_prefix).resolve()
    folders = dict.fromkeys((prefix, PROJECT, _INSTALLED, *also))
    # a mount hides the files of the folder on which it is made, so the project must not be in this folder
    place = next(one for one in _PUBLIC if not any(folder.is_relative_to(one) for folder in folders))
    public = {folder: place / str(number) for number, folder in enumerate(folders)}
    setup = ["set -e", f"mount -t tmpfs -o mode=0755 none {place}"]
    for source, target in public.items():
        setup.append(f"mkdir {target}")
        setup.append(f"mount --bind {shlex.quote(str(source))} {target}")
    home = place / "home"
    setup += [f"mkdir -m 0700 {home}", f"chown {UID}:{UID} {home}", f"cd {home}"]
    interpreter = public[prefix] / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONPATH": f"{public[PROJECT]}:{public[_INSTALLED] / PACKAGES.relative_to(_INSTALLED)}",
        "PYTHONDONTWRITEBYTECODE": "1",
        RUN: os.environ.get(RUN, ""),
        **{name: os.environ[name] for name in MODES if name in os.environ},
        "LD_LIBRARY_PATH": str(public[prefix] / "lib"),  # the dynamic linker finds a shared libpython in this folder
    }
    command = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--inh-caps=-all", "env", "-i"]
    command += [f"{name}={value}" for name, value in environment.items()]
    command += [str(interpreter), *(_translated(argument, public) for argument in arguments)]
    setup.append(f"exec {shlex.join(command)}")
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", "\n".join(setup)]


def host_command(environment: Mapping[str, str]) -> list[str]:
    """Return a command that runs `evaluator-host` as an ordinary user with these settings; the caller appends
    arguments.
    """
    start = f"import os\nos.environ.update({dict(environment)!r})\nfrom evaluator_host.__main__ import main\nmain()"
    *shell, script = ordinary_user_command(["-c", start])
    return [*shell, f'{script} "$@"', "host"]


def _translated(argument: str | Path, public: dict[Path, Path]) -> str:
    path = Path(argument)
    if not isinstance(argument, Path) and "\n" in argument:
        return argument
    for source, target in sorted(public.items(), key=lambda pair: -len(pair[0].parts)):
        if path.is_absolute() and path.is_relative_to(source):
            return str(target / path.relative_to(source))
    return str(argument)
