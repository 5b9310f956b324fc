"""No tar file, however malformed, makes the host write outside the folder into which it unpacks the file."""

import gzip
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from evaluator_host.engine.environments.registry.http import _below, _unfolded
from evaluator_host.engine.environments.registry.set_image import Room, unpack
from evaluator_host.types.errors import PackagesFailed


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def with_header(name: str, value: str) -> tarfile.TarInfo:
    info = member("packages/a")
    info.pax_headers = {name: value}
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
    "a time without end": [with_header("mtime", "inf")],
    "a time that is not a number": [with_header("mtime", "nan")],
    "a name with a zero byte": [with_header("path", "packages/a\0b")],
    "a map of holes that is not one": [with_header("GNU.sparse.map", "a,b,c")],
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


def layer_of(size: int) -> bytes:
    """Return a layer with a file of zeros, compressed in two parts."""
    whole = BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        beside = member("other/zeros")
        beside.size = size
        tar.addfile(beside, BytesIO(bytes(size)))
    return gzip.compress(whole.getvalue()[:10_000]) + gzip.compress(whole.getvalue()[10_000:])


def room(max_bytes: int) -> Room:
    return Room(max_bytes, "the layers of the image unpack to more than", "")


def test_layers_that_unfold_beside_the_set_are_refused() -> None:
    layer = layer_of(100_000)
    assert len(layer) < 1000
    assert list(_below(iter([layer]), "opt/packages", room(100_000))) == []
    both = room(199_999)
    assert list(_below(iter([layer]), "opt/packages", both)) == []
    with pytest.raises(PackagesFailed, match="the layers of the image unpack to more than 199999 bytes"):
        list(_below(iter([layer]), "opt/packages", both))


def test_long_headers_count_as_bytes() -> None:
    whole = BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT) as tar:
        long = member("other/empty")
        long.pax_headers = {"comment": "x" * 100_000}
        tar.addfile(long)
    with pytest.raises(PackagesFailed, match="unpack to more than 90000 bytes"):
        list(_below(iter([gzip.compress(whole.getvalue())]), "opt/packages", room(90_000)))


@pytest.mark.parametrize("step", [7, 1 << 20])
def test_little_of_a_layer_is_unfolded_at_a_time(step: int) -> None:
    layer = layer_of(20 << 20)
    pieces = list(_unfolded(iter([layer[at : at + step] for at in range(0, len(layer), step)])))
    assert max(map(len, pieces)) <= 256 << 10
    assert sum(map(len, pieces)) > 20 << 20
    with pytest.raises(EOFError):
        list(_unfolded(iter([layer[:-10]])))
