"""The arguments for bubblewrap, line by line, let a sandbox see only what it may see."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from evaluator_host.engine.sandbox.bubblewrap.mounts import (
    Bind,
    HostLibraries,
    HostPython,
    find_libraries,
    find_python,
)
from evaluator_host.engine.sandbox.bubblewrap.policy import (
    Descriptors,
    HostFiles,
    Identity,
    bubblewrap_args,
    etc_files,
    runner_command,
    template_args,
)
from evaluator_host.engine.sandbox.linux.masked_paths import masked_paths_on
from evaluator_host.types.evaluator import Environment, Language, SandboxSpec, StandIn

HOST = HostFiles(
    python=HostPython(
        Path("/opt/python/bin/python3.11"),
        (Bind(Path("/root/py/bin/python3.11"), Path("/opt/python/bin/python3.11")),),
        (Path("/opt/python/lib/python3.11/site-packages"),),
        Path("/opt/python/lib"),
    ),
    libraries=HostLibraries((Bind(Path("/usr/lib/x"), Path("/usr/lib/x")),), (("usr/lib", Path("/lib")),)),
    node=Path("/n/node"),
    esbuild=Path("/e/esbuild"),
    restricted=Path("/r"),
    runtimes=Path("/runtimes"),
    javascript=Path("/built/runner"),
    node_flags=("--flag",),
    zones=Path("/usr/share/zoneinfo"),
)
USER, ROOT = Identity(), Identity(2_000_000_000, drop=True)
FDS = Descriptors(seccomp=10, info=11, block=12, files={"passwd": 13})


def spec(language: Language = Language.PYTHON, path: Path | None = None, **limits: int) -> SandboxSpec:
    return SandboxSpec(language, Environment("", language, "", path=path), **limits)


def args(wanted: SandboxSpec | None = None, identity: Identity = USER, host: HostFiles = HOST) -> list[str]:
    return bubblewrap_args(wanted or spec(), host, identity=identity, descriptors=FDS)


def has(arguments: list[str], *sequence: str) -> bool:
    width = len(sequence)
    return any(tuple(arguments[at : at + width]) == sequence for at in range(len(arguments)))


def binds(arguments: list[str]) -> dict[str, str]:
    """Return the source of each host file or folder that a sandbox mounts, by its target in the sandbox."""
    kinds = {"--bind", "--bind-try", "--ro-bind", "--ro-bind-try", "--dev-bind", "--dev-bind-try"}
    return {arguments[at + 2]: arguments[at + 1] for at, value in enumerate(arguments) if value in kinds}


@pytest.mark.parametrize("identity", [USER, ROOT])
@pytest.mark.parametrize("kind", ["ipc", "pid", "net", "uts", "cgroup"])
def test_every_namespace_is_its_own(identity, kind):
    assert f"--unshare-{kind}" in args(identity=identity)


@pytest.mark.parametrize("identity", [USER, ROOT])
def test_network_is_all_that_a_sandbox_with_network_has_besides(identity):
    arguments = args(replace(spec(), network=True), identity=identity)
    assert "--unshare-net" not in arguments
    assert sorted([*arguments, "--unshare-net"]) == sorted(args(identity=identity))


@pytest.mark.parametrize("identity", [USER, ROOT])
def test_ends_with_its_parent_and_has_no_terminal_no_environment_no_rights(identity):
    arguments = args(identity=identity)
    assert {"--die-with-parent", "--new-session", "--clearenv"} <= set(arguments)
    assert has(arguments, "--cap-drop", "ALL")
    assert has(arguments, "--seccomp", "10")
    assert has(arguments, "--hostname", "sandbox")


def test_an_ordinary_users_sandbox_has_a_user_namespace_that_admits_no_other():
    arguments = args()
    assert has(arguments, "--unshare-user", "--uid", "65534", "--gid", "65534")
    assert "--disable-userns" in arguments
    assert "--cap-add" not in arguments
    assert "--disable-userns" not in args(host=replace(HOST, disable_userns=False))


def test_an_ordinary_users_python_runner_is_process_1_so_that_nothing_else_holds_its_channel():
    assert "--as-pid-1" in args()
    # with this option, process 1 would belong to root, but the code runs as another user
    assert "--as-pid-1" not in args(identity=ROOT)
    assert "--as-pid-1" not in args(spec(Language.JAVASCRIPT))


def test_roots_runner_drops_to_its_own_user_with_just_the_rights_for_that():
    arguments = args(identity=ROOT)
    assert "--unshare-user" not in arguments
    added = [arguments[at + 1] for at, value in enumerate(arguments) if value == "--cap-add"]
    assert sorted(added) == ["CAP_SETGID", "CAP_SETUID"]
    assert has(runner_command(spec(), HOST, identity=ROOT), "--drop-to", "2000000000:2000000000")
    assert "--drop-to" not in runner_command(spec(), HOST, identity=USER)


def test_python_sees_only_its_own_files():
    assert binds(args(spec(path=Path("/data/env")))) == {
        "/usr/lib/x": "/usr/lib/x",
        "/opt/runner": "/runtimes/python",
        "/opt/python/bin/python3.11": "/root/py/bin/python3.11",
        "/opt/restricted": "/r",
        "/usr/share/zoneinfo": "/usr/share/zoneinfo",
        "/opt/packages": "/data/env",
        **{f"/dev/{name}": f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")},
    }


@pytest.mark.parametrize("language", [Language.JAVASCRIPT, Language.TYPESCRIPT])
def test_javascript_sees_only_its_own_files(language):
    assert binds(args(spec(language))) == {
        "/usr/lib/x": "/usr/lib/x",
        "/opt/runner": "/built/runner",
        "/opt/node/bin/node": "/n/node",
        "/opt/esbuild/esbuild": "/e/esbuild",
        **{f"/dev/{name}": f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")},
    }


@pytest.mark.parametrize("language", list(Language))
def test_a_shell_and_nodes_command_are_there_where_the_host_has_and_gives_them(language):
    own, plain = replace(HOST, shell=Path("/data/shell"), python_with_node=True), args(spec(language))
    arguments = args(spec(language), host=own)
    python = language is Language.PYTHON
    node = {"/opt/node/bin/node": "/n/node"} if python else {}
    assert binds(arguments) == {**binds(plain), "/bin": "/data/shell", **node}
    assert has(arguments, "--symlink", "/opt/node/bin/node", "/opt/commands/node")
    assert has(plain, "--symlink", "/opt/node/bin/node", "/opt/commands/node") is not python
    assert has(arguments, "--symlink", "/bin/env", "/usr/bin/env")
    assert ("--node" in runner_command(spec(language), own, identity=USER)) is python


@pytest.mark.parametrize("identity", [USER, ROOT])
@pytest.mark.parametrize("language", list(Language))
def test_nothing_of_the_host_is_writable(identity, language):
    arguments = args(spec(language, Path("/data/env")), identity)
    assert not {"--bind", "--bind-try", "--bind-fd", "--bind-data"} & set(arguments)
    after_last_mount = arguments.index("--remount-ro", len(arguments) - 12)
    assert arguments[after_last_mount + 1] == "/"
    mounts = {"--ro-bind", "--dev-bind", "--tmpfs", "--file", "--symlink", "--dir", "--proc"}
    assert not mounts & set(arguments[after_last_mount:])


def test_scratch_space_is_limited_and_open_to_the_guest():
    arguments = args(spec(disk_mb=8))
    for folder in ("/tmp", "/dev/shm"):
        assert has(arguments, "--perms", "1777", "--size", str(8 * 1024 * 1024), "--tmpfs", folder)
    # the third mount is the mask over the host's packages
    assert arguments.count("--tmpfs") == arguments.count("--size") == 3


def test_the_hosts_packages_are_masked():
    arguments = args()
    assert has(arguments, "--tmpfs", "/opt/python/lib/python3.11/site-packages")
    assert has(arguments, "--remount-ro", "/opt/python/lib/python3.11/site-packages")


def test_files_about_the_machine_are_hidden_after_proc_is_mounted():
    arguments = args(host=replace(HOST, masked_paths=(Path("/proc/cmdline"), Path("/proc/fs"))))
    assert has(arguments, "--ro-bind", "/dev/null", "/proc/cmdline")
    assert has(arguments, "--tmpfs", "/proc/fs", "--remount-ro", "/proc/fs")
    assert arguments.index("--proc") < arguments.index("/proc/cmdline")


def test_this_machines_own_are_found(tmp_path):
    (tmp_path / "proc" / "fs").mkdir(parents=True)
    (tmp_path / "proc" / "cmdline").touch()
    assert masked_paths_on(tmp_path) == (Path("/proc/cmdline"), Path("/proc/fs"))


def test_folders_above_a_bind_are_open_to_the_guests_user():
    arguments = args()
    for folder in ("/opt", "/opt/python", "/opt/python/bin", "/usr", "/usr/lib", "/dev", "/etc"):
        assert has(arguments, "--perms", "0755", "--dir", folder), folder


def test_environment_is_small_and_fixed():
    arguments = args()
    names = {arguments[at + 1] for at, value in enumerate(arguments) if value == "--setenv"}
    expected = {"PATH", "HOME", "TMPDIR", "USER", "LANG", "LD_LIBRARY_PATH"}
    threads = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"}
    assert names == expected | threads
    assert "LD_LIBRARY_PATH" not in args(spec(Language.JAVASCRIPT))


def test_runner_commands():
    assert runner_command(spec(path=Path("/data/env")), HOST, identity=USER) == [
        *("/opt/python/bin/python3.11", "-I", "-S", "-B", "-X", "utf8", "/opt/runner/runner.py"),
        *("--restricted", "/opt/restricted", "--packages", "/opt/packages", "--private-tmp"),
    ]
    with_sdk = runner_command(
        replace(spec(path=Path("/data/env")), stand_in=StandIn("dialects/nemo/modules", "nemo_evaluator_sdk")),
        HOST,
        identity=USER,
    )
    assert with_sdk[-5:] == [
        "--packages",
        "/opt/packages",
        "--sdk",
        "/opt/runner/dialects/nemo/modules",
        "--private-tmp",
    ]
    assert runner_command(spec(Language.JAVASCRIPT), HOST, identity=USER) == [
        *("/opt/node/bin/node", "--flag", "/opt/runner/runner.cjs"),
        *("--esbuild", "/opt/esbuild/esbuild", "--memory-mb", "256", "--private-tmp"),
    ]


def test_etc_knows_the_guest_and_nobody_else():
    files = etc_files(ROOT)
    assert files["passwd"] == b"sandbox:x:2000000000:2000000000::/tmp:/nonexistent\n"
    assert set(files) == {"passwd", "group", "nsswitch.conf", "hosts"}
    assert has(args(), "--perms", "0444", "--file", "13", "/etc/passwd")


def test_this_machines_interpreter_is_found_without_its_packages():
    python = find_python()
    targets = [bind.target for bind in python.binds]
    assert python.executable in targets
    assert all(bind.source.exists() for bind in python.binds)
    assert not [target for target in targets if target.name in ("site-packages", "dist-packages")]
    home = next(bind for bind in python.binds if (bind.source / "os.py").is_file())
    if (home.source / "site-packages").is_dir():
        assert home.target / "site-packages" in python.masked


@pytest.mark.parametrize(
    ("layout", "bound", "links"),
    [
        (  # Debian with merged /usr
            {"usr/lib/x86_64-linux-gnu/libc.so.6": "", "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2": "",
             "usr/lib64/ld-linux-x86-64.so.2": "", "lib": "usr/lib", "lib64": "usr/lib64", "usr/lib/firmware/x": ""},
            {"/usr/lib/x86_64-linux-gnu", "/usr/lib64/ld-linux-x86-64.so.2"},
            {"/lib", "/lib64"},
        ),
        (  # Fedora
            {"usr/lib64/libc.so.6": "", "usr/lib64/ld-linux-x86-64.so.2": "", "usr/lib/systemd/x": "", "lib": "usr/lib",
             "lib64": "usr/lib64"},
            {"/usr/lib64"},
            {"/lib", "/lib64"},
        ),
        (  # Debian on aarch64, where the loader is beside the folder of the libraries
            {"usr/lib/aarch64-linux-gnu/libc.so.6": "", "usr/lib/ld-linux-aarch64.so.1": "", "lib": "usr/lib"},
            {"/usr/lib/aarch64-linux-gnu", "/usr/lib/ld-linux-aarch64.so.1"},
            {"/lib"},
        ),
    ],
)  # fmt: skip
def test_c_libraries_of_other_distributions(tmp_path, layout, bound, links):
    for name, content in layout.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content:
            path.symlink_to(content)
        else:
            path.write_text("")
    found = find_libraries(tmp_path)
    assert {str(bind.target) for bind in found.binds} == bound
    assert {str(target) for _, target in found.links} == links


@pytest.mark.parametrize("identity", [USER, ROOT])
def test_a_template_sees_no_more_than_a_sandbox_and_has_only_the_rights_to_make_one(identity):
    arguments = template_args(HOST, identity)
    assert binds(arguments).items() <= binds(args(identity=identity)).items()
    kept = {after for word, after in pairwise(arguments) if word == "--cap-add"}
    assert kept == {"CAP_SYS_ADMIN", "CAP_NET_ADMIN", "CAP_SETPCAP", "CAP_SETUID", "CAP_SETGID"}
    for kind in ("ipc", "pid", "net", "uts", "cgroup"):
        assert f"--unshare-{kind}" in arguments
    assert ("--unshare-user" in arguments) is not identity.drop
    assert has(arguments, "--cap-drop", "ALL")
    assert has(arguments, "--remount-ro", "/")
    assert {"--die-with-parent", "--clearenv"} <= set(arguments)
