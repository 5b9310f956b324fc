"""Code finds the data files of an evaluator by their paths in the folder of a row, and cannot change them."""

import hashlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import Caller
from evaluator_host.types.errors import InvalidRequest, NotFound, OverQuota, SandboxUnavailable, TooLarge
from evaluator_host.types.evaluator import DataFolder, Evaluator, Language, Row
from tests.conftest import settings
from tests.starts import service_of_each_start

VOCABULARY = bytes(range(256)) * 40


async def _chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def _stored(service: Service, content: bytes, workspace: str = "default") -> str:
    return (await service.data.receive(workspace, _chunks(content))).digest


service = service_of_each_start()


PYTHON = """
import os, subprocess

def evaluate(inputs, outputs, trace):
    content = open("models/vocabulary.bin", "rb").read()
    if inputs.get("attack"):
        for change in (
            lambda: open("models/vocabulary.bin", "wb"), lambda: os.remove("models/vocabulary.bin"),
            lambda: os.chmod("models/vocabulary.bin", 0o777), lambda: open("models/more.bin", "wb"),
            lambda: os.rename("models/sub", "models/gone"), lambda: os.link("models/vocabulary.bin", "models/again"),
        ):
            try:
                change()
                return {"score": 0, "changed": change.__code__.co_names}
            except OSError:
                pass
        os.remove("models")
        os.mkdir("models")
        open("models/vocabulary.bin", "wb").write(b"another")
    child = subprocess.check_output(["python3", "-c", "print(len(open('models/sub/more.txt').read()))"], text=True) if os.path.exists("models/sub") else "0"
    here = sorted(os.listdir("models"))
    return {"score": 1, "sum": sum(content), "here": here, "child": int(child), "text": open("models.json").read()}
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("packages", [(), ("six==1.16.0",)], ids=["alone", "beside packages"])
async def test_every_row_finds_the_files_as_they_were_sent(service: Service, packages: tuple[str, ...]) -> None:
    digest, more = await _stored(service, VOCABULARY), await _stored(service, b"more")
    data = {"models/vocabulary.bin": digest, "models/sub/more.txt": more}
    evaluator = Evaluator(PYTHON, packages=packages, files={"models.json": "[]"}, data=data)
    found = {"score": 1, "sum": sum(VOCABULARY), "here": ["sub", "vocabulary.bin"], "child": 4, "text": "[]"}
    changed = {**found, "here": ["vocabulary.bin"], "child": 0}
    for attack, expected in ((False, found), (True, changed), (False, found)):
        result = await service.evaluate(evaluator, Row({"attack": attack}))
        assert result.value == expected, (result.error, result.logs.stderr)


@pytest.mark.sampled(2)
async def test_files_that_are_deleted_while_a_sandbox_starts_are_not_a_fault_of_the_machine(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest, lay_out = await _stored(service, b"soon deleted"), service.data.lay_out

    def delete_then(workspace: str, data: Mapping[str, str]) -> DataFolder:
        found = lay_out(workspace, data)
        service.data.delete_file(workspace, digest)
        return found

    monkeypatch.setattr(service.data, "lay_out", delete_then)
    evaluator = Evaluator("def evaluate(i, o, t):\n    return 1\n", data={"x.bin": digest})
    with pytest.raises(SandboxUnavailable) as refused:
        await service.evaluate(evaluator, Row())
    assert refused.value.detail == (
        "the data files of the evaluator were deleted while its sandbox started; send the request again"
    )


@pytest.mark.sampled(2)
async def test_files_and_data_may_lie_in_one_folder(service: Service) -> None:
    digest = await _stored(service, b"\x00\xff")
    code = "def evaluate(i, o, t):\n    return len(open('a/b/data.bin', 'rb').read()) == 2 and open('a/b/text.txt').read() == 'text'"
    evaluator = Evaluator(code, files={"a/b/text.txt": "text"}, data={"a/b/data.bin": digest, "a/c.bin": digest})
    assert (await service.evaluate(evaluator, Row())).score == 1


@pytest.mark.sampled(6)
@pytest.mark.parametrize("files", [{}, {"models/text.txt": "text"}], ids=["alone", "beside a text"])
async def test_javascript_reads_them_too(service: Service, files: dict[str, str]) -> None:
    code = """
import { readFileSync, writeFileSync, rmSync } from 'node:fs';
export function evaluate(inputs, outputs, trace) {
  const { length } = readFileSync('models/vocabulary.bin');
  try { writeFileSync('models/vocabulary.bin', 'x'); return 0; } catch {}
  rmSync('models', { recursive: true, force: true });
  writeFileSync('models', 'x');
  return length === outputs;
}
"""
    evaluator = Evaluator(
        code, Language.JAVASCRIPT, files=files, data={"models/vocabulary.bin": await _stored(service, VOCABULARY)}
    )
    for _ in range(3):
        result = await service.evaluate(evaluator, Row(outputs=len(VOCABULARY)))
        assert result.score == 1, result.error


async def test_a_workspace_has_its_own_files_alone(service: Service) -> None:
    digest = await _stored(service, b"of another", workspace="other")
    code = "def evaluate(i, o, t):\n    return open('a.txt').read() == 'of another'"
    evaluator = Evaluator(code, data={"a.txt": digest})
    with pytest.raises(InvalidRequest) as refused:
        await service.evaluate(evaluator, Row())
    assert refused.value.problems[0].field == "evaluator.data.a.txt"
    assert (await service.evaluate(evaluator, Row(), caller=Caller("other"))).score == 1
    with pytest.raises(NotFound):
        service.data.delete_file("default", digest)
    service.data.delete_file("other", digest)
    with pytest.raises(InvalidRequest):
        await service.evaluate(evaluator, Row(), caller=Caller("other"))


PATHS = (
    "../a", "/etc/passwd", "a/../../b", "a//b", ".", "", "a\\b", "a\0b", "a/" * 20 + "b", "x" * 300, "a/b", "own.txt/a", "own.txt",
)  # fmt: skip
DIGESTS = ("", "sha256:", "../files/x", "sha256:" + "A" * 64, "sha256:" + "0" * 63 + "/")


async def test_neither_a_path_nor_a_digest_leads_elsewhere(tmp_path: Path) -> None:
    async with open_engine(settings("bubblewrap").model_copy(update={"data_dir": tmp_path})) as service:
        digest = await _stored(service, b"content")
        wrong = [{path: digest, "a/b/c": digest} for path in PATHS] + [{"a": one} for one in DIGESTS]
        for data in wrong:
            with pytest.raises(InvalidRequest) as refused:
                await service.evaluate(Evaluator(PYTHON, files={"own.txt": ""}, data=data), Row())
            assert refused.value.problems[0].field.startswith("evaluator.data."), data
        for one in DIGESTS:
            with pytest.raises(NotFound):
                service.data.get_file("default", one)
        assert not list((tmp_path / "data").glob("*/layouts/*"))


async def test_sizes_are_bounded_and_a_broken_upload_leaves_nothing(tmp_path: Path) -> None:
    host = settings("bubblewrap").model_copy(update={"data_dir": tmp_path, "data_mb": 1})
    async with open_engine(host) as service:
        with pytest.raises(TooLarge):
            await service.data.receive("w", _chunks(bytes(1 << 20), b"x"))
        await service.data.receive("w", _chunks(bytes(1 << 19)))
        with pytest.raises(OverQuota):
            await service.data.receive("w", _chunks(b"x" * (1 << 19), b"x"))
        await service.data.receive("another", _chunks(b"x" * (1 << 19), b"x"))
        kept = service.data.list_files("w")
        assert [(one.size_bytes, one.digest) for one in kept] == [
            (1 << 19, f"sha256:{hashlib.sha256(bytes(1 << 19)).hexdigest()}")
        ]
        assert not list((tmp_path / "data").glob("*/*/partial-*"))
