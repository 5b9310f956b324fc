"""The host reads and removes folders from untrusted sources, even if they are nested too deeply for recursion or for
PATH_MAX, cannot be read by their owner, have names that are not text, or change at the same time.
"""

import ast
import os
import resource
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator_host.engine.system.tree import remove, size_bytes, take_over, temporary_folder, walk
from tests.descriptors import descriptors
from tests.ordinary_user import pass_as_ordinary_user

DEEP = 2_500
NO_TEXT = os.fsdecode(b"\xff\xfe")
HOST = Path(__file__).parents[2] / "evaluator_host"
BANNED = {"rmtree", "rglob", "TemporaryDirectory", "fwalk", "copytree"}
# modules that read only files of the user's own machine or of this program, never files from strangers
OWN = (
    "cli",
    "vendors",
    "migrate/host",
    "selftest/attacks",
    "engine/sandbox/docker/image/recipe.py",
    "engine/environments/toolchain.py",
)
OWN += ("engine/sandbox/docker/image/build.py",)


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder in memory, because thousands of nested folders take seconds on a disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", ignore_cleanup_errors=True) as name:
        yield Path(name)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def nest(root: Path, levels: int, *, name: str = "d", mode: int = 0o755) -> None:
    """Make nested folders, each with a file of ten bytes, by descriptors, since the path is too long for one call."""
    root.mkdir()
    folder = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=folder)
        inner = os.open(name, os.O_RDONLY, dir_fd=folder)
        file = os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=inner)
        os.write(file, b"x" * 10)
        os.close(file)
        os.fchmod(folder, mode)
        os.close(folder)
        folder = inner
    os.fchmod(folder, mode)
    os.close(folder)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("mode", "name"), [(0o755, "n" * 255), (0o555, "d"), (0o400, NO_TEXT), (0o000, "d")])
def test_a_tree_is_removed_however_deep_and_whatever_its_modes_and_names(home: Path, mode: int, name: str) -> None:
    before = descriptors()
    nest(home / "tree", DEEP, name=name, mode=mode)
    (home / "beside").write_text("x")
    assert remove(home / "tree")
    assert names(home) == ["beside"]
    assert descriptors() <= before


@pytest.mark.slow
def test_a_walk_sees_every_level_with_few_descriptors(home: Path) -> None:
    before, most, paths = descriptors(), 0, 0
    nest(home / "tree", DEEP, name=NO_TEXT)
    for number, entry in enumerate(walk(home / "tree")):
        if number % 500 == 0:
            most = max(most, len(descriptors()))
        paths = max(paths, len(entry.path)) if entry.depth % 1000 == 0 else paths
    assert most < len(before) + 100
    assert paths > 4096
    assert descriptors() <= before
    assert size_bytes(home / "tree") == DEEP * 10
    assert size_bytes(home / "tree", occupied=True) >= DEEP
    assert size_bytes(home / "none") == 0
    assert remove(home / "tree")


def test_a_walk_leaves_out_what_it_has_no_descriptor_for_unless_it_is_strict(home: Path) -> None:
    (home / "tree" / "below").mkdir(parents=True)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = os.open("/", os.O_RDONLY)  # this takes the lowest free descriptor
    os.close(spare)
    resource.setrlimit(resource.RLIMIT_NOFILE, (spare + 1, before[1]))
    try:
        assert list(walk(home / "tree", strict=False)) == [], (
            "the folder can be opened but not listed, so nothing may be found in it"
        )
        with pytest.raises(OSError, match="Too many open files"):
            list(walk(home / "tree"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert [entry.path for entry in walk(home / "tree", strict=False)] == ["below"]


def test_links_are_neither_followed_nor_their_targets_touched(home: Path) -> None:
    for outside in ("kept", "kept2"):
        (home / outside).mkdir(mode=0o500)
        (home / outside / "file").touch() if os.geteuid() == 0 else None
    tree = home / "tree"
    tree.mkdir()
    (tree / "out").symlink_to(home / "kept")
    (tree / "loop").symlink_to("loop")
    assert {entry.path for entry in walk(tree)} == {"out", "loop"}
    take_over(tree, None)
    assert stat.S_IMODE((home / "kept").stat().st_mode) == 0o500
    assert remove(tree)
    (home / "name").symlink_to(home / "kept2")
    with pytest.raises(OSError, match="Not a directory"):
        list(walk(home / "name"))
    assert remove(home / "name")
    assert names(home) == ["kept", "kept2"]
    assert len(names(home / "kept")) == len(names(home / "kept2"))


def test_a_tree_that_somebody_writes_to_is_removed_as_soon_as_they_stop(home: Path) -> None:
    tree, stop = home / "tree", threading.Event()
    (tree / "a" / "b").mkdir(parents=True)

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            try:
                (tree / "a" / f"b{number % 50}").mkdir(parents=True, exist_ok=True)
                (tree / "a" / f"b{number % 50}" / "f").touch()
                (tree / "a" / f"b{number % 50}").rename(tree / f"moved{number % 7}")
            except OSError:
                continue

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            list(walk(tree)) if tree.exists() else None
            # the tree may still exist after this, but no error is raised
            remove(tree)
    finally:
        stop.set()
        writer.join()
    assert remove(tree)


def test_a_tree_is_taken_over_by_its_owner(home: Path) -> None:
    nest(home / "tree", 100, mode=0o000)
    (home / "tree").chmod(0o700)
    uid = 12_345 if os.geteuid() == 0 else None
    take_over(home / "tree", uid)
    for entry in walk(home / "tree"):
        assert not entry.is_folder or entry.stat.st_mode & 0o700 == 0o700
        assert entry.stat.st_uid == (os.getuid() if uid is None else uid)
    assert remove(home / "tree")


def test_a_temporary_folder_goes_with_what_lies_in_it(home: Path) -> None:
    with temporary_folder(home, "made-") as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        nest(folder / "deep", DEEP)
    assert names(home) == []


def test_a_folder_that_is_left_out_is_not_entered(home: Path) -> None:
    for path in ("a/b/c", "x/b/d"):
        (home / path).mkdir(parents=True)
    seen = []
    for entry in walk(home, only_folders=True):
        entry.enter = entry.name != "b"
        seen.append(entry.path)
    assert sorted(seen) == ["a", "a/b", "x", "x/b"]


def test_no_other_module_walks_or_removes_trees() -> None:
    found = []
    for file in HOST.rglob("*.py"):
        name, text = file.relative_to(HOST).as_posix(), file.read_text()
        # the text is searched first, because parsing takes longer
        if not name.startswith(OWN) and any(word in text for word in (*BANNED, "os.walk")):
            for node in ast.walk(ast.parse(text)):
                called = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
                walks = called == "walk" and isinstance(node, ast.Attribute) and ast.unparse(node) == "os.walk"
                if called in BANNED or walks:
                    found.append(f"{name}:{node.lineno} {called}")  # type: ignore[attr-defined]
    assert found == [], "these modules must use evaluator_host.engine.system.tree"


@pytest.mark.long
def test_all_of_this_holds_for_an_ordinary_user_too() -> None:
    pass_as_ordinary_user(Path(__file__))
