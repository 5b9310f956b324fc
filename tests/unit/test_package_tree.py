"""A package set is a tree of files. Its digest covers names, contents, links and who may execute a file; its tar file
contains every entry.
"""

import os
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from evaluator_host.engine.sandbox.docker.image.package_tree import tar_stream, tree_digest
from evaluator_host.types.errors import SandboxUnavailable

LONG = "a" * 120 + "/" + "b" * 120 + "/ümlaut.py"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / LONG).parent.mkdir(parents=True)
    (root / LONG).write_bytes(b"x" * 1000)
    (root / "tool").write_text("#!/bin/sh\n")
    (root / "tool").chmod(0o750)
    (root / "link").symlink_to("tool")
    (root / "empty").mkdir(mode=0o700)
    return root


def unpacked(tree: Path) -> tarfile.TarFile:
    return tarfile.open(fileobj=BytesIO(b"".join(tar_stream({"Recipe": b"FROM x"}, trees={"packages": tree}))))


def test_the_tar_holds_every_entry_for_every_user_to_read(tree: Path) -> None:
    with unpacked(tree) as tar:
        modes = {member.name: (member.type, member.mode, member.uid) for member in tar}
        content = tar.extractfile(f"packages/{LONG}")
        assert content is not None
        assert content.read() == b"x" * 1000
        assert tar.getmember("packages/link").linkname == "tool"
    assert modes["packages/tool"] == (tarfile.REGTYPE, 0o755, 0)
    assert modes[f"packages/{LONG}"] == (tarfile.REGTYPE, 0o644, 0)
    assert modes["packages/empty"] == (tarfile.DIRTYPE, 0o755, 0)
    assert modes["Recipe"] == (tarfile.REGTYPE, 0o644, 0)
    assert len(modes) == 8


def test_a_hard_link_is_a_file_of_its_own(tree: Path) -> None:
    os.link(tree / "tool", tree / "twin")
    with unpacked(tree) as tar:
        assert {tar.getmember(f"packages/{name}").type for name in ("tool", "twin")} == {tarfile.REGTYPE}


def test_the_digest_sees_names_contents_links_and_who_may_execute(tree: Path) -> None:
    seen = [tree_digest(tree)]
    (tree / "tool").write_text("#!/bin/no\n")
    seen.append(tree_digest(tree))
    (tree / "tool").chmod(0o644)
    seen.append(tree_digest(tree))
    (tree / "tool").rename(tree / "tools")
    seen.append(tree_digest(tree))
    (tree / "link").unlink()
    (tree / "link").symlink_to("tools")
    seen.append(tree_digest(tree))
    (tree / "empty").rmdir()
    seen.append(tree_digest(tree))
    assert len(set(seen)) == 6


def test_the_digest_does_not_see_times_or_who_may_read(tree: Path) -> None:
    before = tree_digest(tree)
    os.utime(tree / "tool", (1, 1))
    (tree / LONG).chmod(0o600)
    assert tree_digest(tree) == before


def test_a_file_that_shrinks_meanwhile_is_not_sent_as_whole(tree: Path) -> None:
    (tree / "tool").write_bytes(b"x" * 600_000)
    pieces = tar_stream({}, trees={"packages": tree})
    assert any(len(piece) > 100_000 for piece in pieces), "a part of the file must have been read by now"
    (tree / "tool").write_bytes(b"")
    with pytest.raises(SandboxUnavailable, match="changed while it was read"):
        list(pieces)


def test_an_entry_that_is_not_a_file_is_refused(tree: Path) -> None:
    os.mkfifo(tree / "pipe")
    with pytest.raises(SandboxUnavailable, match="neither a file"):
        tree_digest(tree)
