"""Whatever a tar from elsewhere says, nothing is written outside the folder it is unpacked to."""

import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from evaluator_host.engine.environments.registry.http import _below
from evaluator_host.engine.environments.registry.set_image import unpack
from evaluator_host.types.errors import PackagesFailed


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


HOSTILE = {
    "a path that climbs": [member("packages/../../escaped")],
    "an absolute path": [member("/escaped")],
    "a link that leads out": [member("packages/out", tarfile.SYMTYPE, "/etc/passwd")],
    "a link that climbs": [member("packages/out", tarfile.SYMTYPE, "../../escaped")],
    "a climb through a link": [
        member("packages/a/b", tarfile.SYMTYPE, "../c"),
        member("packages/c", tarfile.DIRTYPE),
        member("packages/out", tarfile.SYMTYPE, "a/b/../../escaped"),
    ],
    "a write through a link": [
        member("packages/out", tarfile.SYMTYPE, "../.."),
        member("packages/out/escaped"),
    ],
    "a link through a link": [
        member("packages/out", tarfile.SYMTYPE, "../.."),
        member("packages/out/escaped/link", tarfile.SYMTYPE, "x"),
    ],
    "a hard link": [member("packages/hard", tarfile.LNKTYPE, "/etc/passwd")],
    "a device": [member("packages/null", tarfile.CHRTYPE)],
    "a file twice": [member("packages/a"), member("packages/a")],
}


@pytest.mark.parametrize("members", HOSTILE.values(), ids=HOSTILE)
def test_nothing_is_unpacked_outside_its_folder(members: list[tarfile.TarInfo], tmp_path: Path) -> None:
    whole = BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for one in members:
            tar.addfile(one)
    folder = tmp_path / "deep" / "set"
    folder.mkdir(parents=True)
    with pytest.raises((PackagesFailed, FileExistsError)):
        unpack(iter([whole.getvalue()]), folder, max_bytes=1000)
    assert {path.name for path in tmp_path.iterdir()} == {"deep"}
    assert {path.name for path in (tmp_path / "deep").iterdir()} == {"set"}


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_without_end_is_refused_before_it_is_read(kind: bytes, tmp_path: Path) -> None:
    header = member("packages/long", kind)
    header.size = 1 << 40
    pieces = iter([header.tobuf(tarfile.GNU_FORMAT)])
    with pytest.raises(PackagesFailed, match="a header of"):
        unpack(pieces, tmp_path, max_bytes=1 << 20)


def test_a_layer_that_unfolds_beside_the_set_is_refused() -> None:
    whole = BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as tar:
        beside = member("other/zeros")
        beside.size = 100_000
        tar.addfile(beside, BytesIO(bytes(beside.size)))
    assert len(whole.getvalue()) < 1000
    assert list(_below(iter([whole.getvalue()]), "opt/packages", 100_000)) == []
    with pytest.raises(PackagesFailed, match="a layer of the image unfolds to more than 99999 bytes"):
        list(_below(iter([whole.getvalue()]), "opt/packages", 99_999))
