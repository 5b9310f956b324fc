"""A builder's sandbox can use the network and sees its tools and its own folders, but no other file of the host."""

import sys
from pathlib import Path

import pytest

from evaluator_host.engine.environments.build.builder import build_view
from evaluator_host.engine.environments.build.policy import (
    BuildView,
    ProcessLimits,
    builder_args,
    entry_command,
    etc_files,
)
from evaluator_host.engine.packages.tools import installed_tools
from evaluator_host.engine.sandbox.bubblewrap.mounts import Bind, find_libraries, find_python
from evaluator_host.engine.sandbox.bubblewrap.policy import Descriptors, Identity
from evaluator_host.engine.system.processes import Command

HOME, CWD = Path("/srv/build"), Path("/srv/work/one")
PROBE = Command(("/bin/true",), CWD, {})
DESCRIPTORS = Descriptors(seccomp=3, info=4, block=5, files={"passwd": 6, "group": 7})
USER, ROOT = Identity(), Identity(1_899_999_999, drop=True)


def arguments(view: BuildView | None = None, *, identity: Identity = USER, disable_userns: bool = True) -> list[str]:
    view = view or BuildView(seen=(Bind(Path("/opt/uv"), Path("/usr/bin/uv")),), writable=binds(HOME, CWD))
    return builder_args(view, identity=identity, descriptors=DESCRIPTORS, disable_userns=disable_userns)


def binds(*paths: Path) -> tuple[Bind, ...]:
    return tuple(Bind(path, path) for path in paths)


def values(found: list[str], option: str, *, at: int = 1) -> list[str]:
    return [found[place + at] for place, argument in enumerate(found) if argument == option]


@pytest.mark.parametrize("identity", [USER, ROOT], ids=["ordinary user", "root"])
def test_everything_but_the_network_is_its_own(identity: Identity) -> None:
    found = arguments(identity=identity)
    for option in ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup", "--die-with-parent"):
        assert option in found
    assert {"--new-session", "--clearenv"} <= set(found)
    assert values(found, "--cap-drop") == ["ALL"]
    assert values(found, "--seccomp") == ["3"]
    assert not {"--unshare-net", "--unshare-all", "--share-net", "--not-a-security-boundary"} & set(found)


def test_an_ordinary_user_has_a_user_namespace_and_no_other_may_follow() -> None:
    found = arguments()
    assert "--unshare-user" in found
    assert values(found, "--uid") == values(found, "--gid") == ["65534"]
    assert "--disable-userns" in found
    assert "--disable-userns" not in arguments(disable_userns=False)
    assert values(found, "--cap-add") == []


def test_root_keeps_no_more_than_it_takes_to_become_somebody_else() -> None:
    found = arguments(identity=ROOT)
    assert "--unshare-user" not in found
    assert values(found, "--cap-add") == ["CAP_SETUID", "CAP_SETGID"]


def test_only_its_own_folders_are_writable_and_the_root_is_not() -> None:
    found = arguments()
    assert values(found, "--bind", at=2) == [str(HOME), str(CWD)]
    assert {Path(path).parent for path in values(found, "--dev-bind")} == {Path("/dev")}
    assert "/" in values(found, "--remount-ro")
    sized = [found[place - 2 : place + 2] for place, argument in enumerate(found) if argument == "--tmpfs"]
    assert all(option == "--size" for option, *_ in (part for part in sized))


def test_a_folder_below_a_writable_folder_can_be_shown_empty() -> None:
    other = HOME / "staging" / "other"
    found = arguments(BuildView(seen=(), writable=binds(CWD, HOME), empty=(other,)))
    assert found.index(str(HOME)) < found.index(str(other))
    assert str(other) in values(found, "--remount-ro")


def test_folders_are_made_before_what_is_put_into_them() -> None:
    found = arguments()
    made = [place for place, argument in enumerate(found) if argument == "--dir" and found[place + 1] == "/usr/bin"]
    assert made
    assert made[0] < found.index("/usr/bin/uv")


def test_its_variables_are_the_commands_and_in_no_command_line() -> None:
    view = BuildView(seen=(), writable=binds(CWD), environment={"UV_INDEX_PASSWORD": "s3cret", "PATH": "/x"})
    found = arguments(view)
    assert dict(zip(values(found, "--setenv"), values(found, "--setenv", at=2), strict=True)) == {
        "PATH": "/x",
        "LANG": "C.UTF-8",
        "UV_INDEX_PASSWORD": "s3cret",
    }
    assert "s3cret" not in repr(view)
    assert "s3cret" not in " ".join(entry_command(("/bin/true",), CWD, python=Path(sys.executable)))


def test_only_tools_and_the_name_service_are_visible() -> None:
    tools = installed_tools()
    seen = {str(bind.target) for bind in build_view(PROBE, tools, []).seen}
    expected = {str(bind.target) for bind in find_libraries().binds}
    expected |= {str(bind.source) for bind in find_python().binds}
    expected |= {str(tools.uv), str(tools.node), str(tools.npm)}
    assert {Path(path).name for path in seen - expected} <= {"resolv.conf", "hosts", "nsswitch.conf", "gai.conf"}
    assert "/usr" in {str(bind.target) for bind in build_view(PROBE, tools, [], compilers=True).seen}


def test_its_users_are_one() -> None:
    assert etc_files(ROOT)["passwd"].count(b"\n") == 1


def test_where_there_is_no_sandbox_limits_are_set_on_entering() -> None:
    argv = entry_command(
        ("/bin/true",), CWD, python=Path("/usr/bin/python3"), bounds=ProcessLimits(file_mb=1, data_mb=64, processes=9)
    )
    limits = dict(limit.split("=") for limit in argv[5].split(","))
    assert limits == {
        "CORE": "1", "FSIZE": "1048576", "NOFILE": "8192", "MEMLOCK": "65536", "MSGQUEUE": "0", "DATA": "67108864", "NPROC": "9",
    }  # fmt: skip
    assert argv[6:] == ("", "bound", str(CWD), "/bin/true")
    assert entry_command(("/bin/true",), CWD, python=Path("/usr/bin/python3"), user=7)[5:8] == ("", "7", "free")
