"""A user can choose among a package's versions, from the real indexes and from the tests' own index."""

import os
from pathlib import Path

import pytest

from evaluator_host.engine.packages.index import IndexSettings
from evaluator_host.engine.packages.lock import LockTarget
from evaluator_host.engine.packages.versions import VersionList
from evaluator_host.types.errors import IndexUnavailable, NotFound
from evaluator_host.types.evaluator import Language
from tests.package_index import serving
from tests.server import free_port

PYTHON = LockTarget("3.12")


@pytest.mark.long
async def test_the_real_indexes_say_what_there_is(tmp_path: Path) -> None:
    authorities = os.environ.get("SSL_CERT_FILE")
    index = IndexSettings(
        tmp_path, ca_file=Path(authorities) if authorities else None, proxy=os.environ.get("HTTPS_PROXY")
    )
    known = VersionList(index)
    numpy = await known.list_versions("numpy", Language.PYTHON, target=PYTHON)
    assert "2.1.0" in numpy.versions
    assert "1.0.4" not in numpy.versions  # there is no wheel of version 1.0.4
    lodash = await known.list_versions("lodash", Language.JAVASCRIPT, target=LockTarget("24"))
    assert lodash.versions.index("4.17.21") < lodash.versions.index("4.17.20")
    scoped = await known.list_versions("@types/node", Language.TYPESCRIPT, target=LockTarget("24"))
    assert scoped.versions


async def test_an_answer_of_an_index_is_remembered(tmp_path: Path) -> None:
    with serving() as index:
        index.add("counted", "")
        known = VersionList(IndexSettings(tmp_path, pip_index_url=index.simple))
        for _ in range(2):
            found = await known.list_versions("Counted", Language.PYTHON, target=PYTHON)
            assert (found.name, found.versions) == ("counted", ("1.0.0",))
        for _ in range(2):
            with pytest.raises(NotFound):
                await known.list_versions("nobody", Language.PYTHON, target=PYTHON)
        assert index.asked == ["/simple/counted/", "/simple/nobody/"]


async def test_an_index_that_is_silent_is_said_to_be(tmp_path: Path) -> None:
    silent = IndexSettings(tmp_path, pip_index_url=f"http://reader:secretword@127.0.0.1:{free_port()}/simple")
    with pytest.raises(IndexUnavailable) as caught:
        await VersionList(silent).list_versions("numpy", Language.PYTHON, target=PYTHON)
    assert "secretword" not in str(caught.value)
