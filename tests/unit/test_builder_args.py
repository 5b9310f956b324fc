"""The builder sandbox sees the network, its tools and its own folders, and no other file of this host."""

from pathlib import Path

from evaluator_host.environments.builder import builder_args
from evaluator_host.packages.tools import installed_tools
from evaluator_host.sandbox.host_files import find_libraries, find_python

HOME = Path("/srv/build")
TOOLS = installed_tools()


def binds(arguments: list[str], option: str) -> set[str]:
    return {arguments[place + 2] for place, argument in enumerate(arguments) if argument == option}


def test_only_the_builders_own_folders_are_writable() -> None:
    arguments = builder_args(TOOLS, writable=[HOME, Path("/tmp/workspace")], ca_file=None)
    assert binds(arguments, "--bind") == {str(HOME), "/tmp/workspace"}
    assert "--dev-bind" not in arguments


def test_only_tools_and_the_name_service_are_visible() -> None:
    arguments = builder_args(TOOLS, writable=[HOME], ca_file=None)
    expected = {str(bind.target) for bind in find_libraries().binds}
    expected |= {str(bind.source) for bind in find_python().binds}
    expected |= {str(TOOLS.uv), str(TOOLS.node), str(TOOLS.npm)}
    assert {path for path in binds(arguments, "--ro-bind") - expected if not path.startswith("/etc/")} == set()
    names = {"resolv.conf", "hosts", "nsswitch.conf", "passwd", "group", "gai.conf"}
    assert {Path(path).name for path in binds(arguments, "--ro-bind") - expected} <= names


def test_everything_but_the_network_is_its_own() -> None:
    arguments = builder_args(TOOLS, writable=[HOME], ca_file=None)
    for option in ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"):
        assert option in arguments
    assert arguments[arguments.index("--cap-drop") + 1] == "ALL"
    assert not {"--unshare-net", "--unshare-all", "--share-net"} & set(arguments)


def test_the_ca_file_is_visible_when_there_is_one(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.touch()
    assert str(file) in binds(builder_args(TOOLS, writable=[HOME], ca_file=file), "--ro-bind")
