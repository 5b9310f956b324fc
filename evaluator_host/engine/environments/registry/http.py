"""Pushes and pulls images of package sets over the HTTP API of a container registry.

The requests follow the OCI distribution specification 1.1. An image has one layer with the files of the set and one
with the record. The image's tag is the set's digest, `sha256-…`, so that hosts find the image by the digest of a lock.
The credentials are those of `docker login`, and never reach a sandbox.
"""

import asyncio
import base64
import gzip
import hashlib
import json
import platform
import re
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final
from urllib.parse import urljoin

import docker.auth
import httpx

from evaluator_host.engine.environments.record import Record
from evaluator_host.engine.environments.registry.set_image import (
    FORMAT,
    LABEL_SET,
    RECORD_BYTES,
    RECORD_PATH,
    Pulled,
    Room,
    check_lock,
    in_loop,
    split_reference,
    take_out,
)
from evaluator_host.engine.packages.lock import Progress
from evaluator_host.engine.sandbox.docker.image.package_tree import BoundedHeaders, as_file, tar_stream, tree_digest
from evaluator_host.engine.sandbox.docker.policy import IMAGE_PACKAGES
from evaluator_host.types.errors import IndexUnavailable, InvalidRequest, PackagesFailed
from evaluator_host.types.evaluator import Environment

_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_CONFIG: Final = "application/vnd.oci.image.config.v1+json"
_LAYER: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
_TAKEN: Final = f"{_MANIFEST}, application/vnd.docker.distribution.manifest.v2+json"
_DOCUMENT_BYTES: Final = 4 << 20  # size limit of a manifest, configuration or response, in bytes
_TIMEOUT: Final = httpx.Timeout(30.0, read=120.0, write=120.0)
_PIECE_BYTES: Final = 256 << 10
_LAYERS: Final = 127  # maximum number of layers that an engine can mount
_GZIP: Final = b"\x1f\x8b"
_GZIP_FORMAT: Final = 31  # zlib's number for the gzip format
_HUB: Final = ("docker.io", "registry-1.docker.io")
_LOOPBACK: Final = re.compile(r"(localhost|127(\.\d+){3}|\[::1\])(:\d+)?")


def tag_of(digest: str) -> str:
    """Return the image tag, `sha256-…`, for a package set's digest, `sha256:…`."""
    return digest.replace(":", "-")


async def push(environment: Environment, reference: str, *, record: Record, progress: Progress | None = None) -> str:
    """Push an installed package set; return its image name with the digest, `repository@sha256:…`.

    Raises:
      InvalidRequest: the reference cannot be used, or the set has no packages.
      PackagesFailed: the record belongs to another set, or the registry refused.
      IndexUnavailable: the registry does not answer.
    """
    if environment.path is None or "@" in reference:
        raise InvalidRequest(
            "only a set that has packages can be pushed, and only to a tag, not to a digest; a tag looks like "
            "registry.example:5000/team/scoring:1"
        )
    check_lock(record, digest=environment.digest)
    where, tell = split_reference(reference), in_loop(progress)
    pinned = await asyncio.to_thread(_push, where, environment.path, record, tell)
    tell("ready", 1, 1)
    return pinned


async def pull(
    reference: str,
    target: Path,
    *,
    digest: str | None = None,
    max_bytes: int,
    progress: Progress | None = None,
) -> Pulled:
    """Pull a package set into the folder `target`.

    The folder appears with all its files, or not at all.

    `digest` is the expected digest of the set, if known.

    Raises:
      InvalidRequest: the reference cannot be used.
      PackagesFailed: there is no such image, or it does not contain the expected package set completely.
      IndexUnavailable: the registry does not answer.
    """
    where, tell = split_reference(reference), in_loop(progress)
    pulled = await asyncio.to_thread(_pull, where, target, digest, max_bytes, tell)
    tell("ready", 1, 1)
    return pulled


def _push(where: tuple[str, str], files: Path, record: Record, tell: Progress) -> str:
    name, tag = where
    tell("hashing", 0, None)
    text = json.dumps({"format": FORMAT, "tree": tree_digest(files), "record": record.to_json()}).encode()
    packages, place = IMAGE_PACKAGES.lstrip("/"), RECORD_PATH.lstrip("/")
    with _opened(name) as registry, tempfile.TemporaryFile() as made:
        layers: list[dict[str, Any]] = []
        diffs: list[str] = []
        for stream in (tar_stream({}, trees={packages: files}), tar_stream({place: text}, trees={})):
            tell("building", len(layers), 2)
            diff, descriptor = _compress(stream, made)
            tell("pushing", len(layers), 2)
            registry.upload(made, descriptor)
            layers.append(descriptor)
            diffs.append(diff)
        settings = {"Labels": {LABEL_SET: record.digest}, "Cmd": ["/nothing"]}
        rootfs = {"type": "layers", "diff_ids": diffs}
        machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
        config = json.dumps({"architecture": machine, "os": "linux", "config": settings, "rootfs": rootfs}).encode()
        made.seek(0)
        made.truncate()
        made.write(config)
        described = {"mediaType": _CONFIG, "digest": _digest(config), "size": len(config)}
        registry.upload(made, described)
        manifest = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": described, "layers": layers}
        body = json.dumps(manifest).encode()
        for one in dict.fromkeys((tag, tag_of(record.digest))):
            registry.put_manifest(one, body)
    return f"{name}@{_digest(body)}"


def _compress(stream: Iterator[bytes], made: IO[bytes]) -> tuple[str, dict[str, Any]]:
    """Compress a tar into a layer; return the digest of the tar, and the descriptor of the layer."""
    plain = hashlib.sha256()
    made.seek(0)
    made.truncate()
    with gzip.GzipFile(fileobj=made, mode="wb", compresslevel=1, mtime=0) as zipped:
        for piece in stream:
            plain.update(piece)
            zipped.write(piece)
    size = made.tell()
    made.seek(0)
    packed = hashlib.sha256()
    while piece := made.read(_PIECE_BYTES):
        packed.update(piece)
    descriptor = {"mediaType": _LAYER, "digest": f"sha256:{packed.hexdigest()}", "size": size}
    return f"sha256:{plain.hexdigest()}", descriptor


def _pull(where: tuple[str, str], target: Path, digest: str | None, max_bytes: int, tell: Progress) -> Pulled:
    name, tag = where
    with _opened(name) as registry:
        tell("pulling", 0, None)
        manifest, found = registry.manifest(tag)
        config = registry.document(manifest.get("config"))
        settings = config.get("config")
        labels = settings.get("Labels") if isinstance(settings, dict) else None
        if not isinstance(labels, dict) or LABEL_SET not in labels:
            raise PackagesFailed(
                f"{name}:{tag} is not a package set; give an image that `evaluator-host packages push` made"
            )
        layers = _Layers(registry, manifest["layers"], max_bytes + RECORD_BYTES)
        record = take_out(layers.archive, target=target, digest=digest, max_bytes=max_bytes, tell=tell)
    return Pulled(record, target, f"{name}@{found}")


@dataclass(frozen=True, slots=True)
class _Layers:
    """Reads the files in the layers of an image."""

    registry: "_Registry"
    layers: list[dict[str, Any]]
    max_bytes: int  # maximum size of all files in all layers together, in bytes

    @contextmanager
    def archive(self, path: str) -> Iterator[Iterator[bytes]]:
        """Yield a tar of the file or folder at `path` in pieces; the last layer that contains this path counts."""
        but = ", so the image is not a package set; check its name"
        if len(self.layers) > _LAYERS:
            raise PackagesFailed(f"the image has {len(self.layers)} layers{but}")
        room = Room(self.max_bytes, "the layers of the image unpack to more than", but)
        for layer in reversed(self.layers):
            with self.registry.blob(layer, max_bytes=self.max_bytes) as pieces:
                found = _below(pieces, path.lstrip("/"), room)
                if (first := next(found, None)) is not None:
                    yield _joined(first, found)
                    return
        raise PackagesFailed("the image does not have the files of a package set; push the set again")


def _joined(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _unfolded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the tar of a layer, which may be compressed with gzip, in pieces of a limited size.

    `tarfile` itself would decompress all bytes at once, and copy the remaining bytes for each block that it reads.
    """
    first = next(pieces, b"")
    if not first.startswith(_GZIP):
        yield from chain([first] if first else [], pieces)
        return
    unzip = zlib.decompressobj(_GZIP_FORMAT)
    for piece in chain([first], pieces):
        packed = piece
        while packed:
            if unzip.eof:  # a layer may consist of several parts that were compressed separately
                unzip = zlib.decompressobj(_GZIP_FORMAT)
            if plain := unzip.decompress(packed, _PIECE_BYTES):
                yield plain
            packed = unzip.unused_data if unzip.eof else unzip.unconsumed_tail
    while plain := unzip.decompress(b"", _PIECE_BYTES):
        yield plain
    if not unzip.eof:
        raise EOFError("it ends too early")


def _below(pieces: Iterator[bytes], prefix: str, room: Room) -> Iterator[bytes]:
    """Yield a tar of the files at a path in a layer; names in the tar begin with the last part of the path.

    Raises:
      PackagesFailed: the layer is larger than `room`; files at other paths count too, because they are decompressed as
        well.
    """
    base, some = PurePosixPath(prefix).name, False
    with tarfile.open(fileobj=as_file(_unfolded(pieces)), mode="r|", tarinfo=BoundedHeaders) as tar:
        for member in room.entries_of(tar):
            name = PurePosixPath("/", member.name).as_posix().lstrip("/")
            if name != prefix and not name.startswith(f"{prefix}/"):
                continue
            some = True
            member.name, member.pax_headers = base + name[len(prefix) :], {}
            yield member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
            if (file := tar.extractfile(member) if member.isreg() else None) is not None:
                while piece := file.read(_PIECE_BYTES):
                    yield piece
                yield bytes(-member.size % tarfile.BLOCKSIZE)
    if some:
        yield bytes(2 * tarfile.BLOCKSIZE)


class _Registry:
    """Sends requests to one repository of a registry. Blocking."""

    def __init__(self, client: httpx.Client, name: str, user: tuple[str, str] | None) -> None:
        self._client = client
        self._name = name
        self._user = user
        self._authorization: dict[str, str] = {}

    def manifest(self, reference: str) -> tuple[dict[str, Any], str]:
        """Return a manifest by tag or digest, and its digest."""
        _, content = self._ask("GET", f"manifests/{reference}", headers={"Accept": _TAKEN})
        digest = _digest(content)
        if reference.startswith("sha256:") and digest != reference:
            raise PackagesFailed("the registry's copy of the package set is damaged: push the set again")
        found = _object(content)
        if not isinstance(found.get("layers"), list):
            raise PackagesFailed(
                f"{self._name}:{reference} is an image for several platforms, so it is not a package set; check the "
                "name"
            )
        return found, digest

    def document(self, descriptor: Any) -> dict[str, Any]:
        with self.blob(descriptor, max_bytes=_DOCUMENT_BYTES) as pieces:
            return _object(_small(pieces))

    @contextmanager
    def blob(self, descriptor: Any, *, max_bytes: int) -> Iterator[Iterator[bytes]]:
        """Yield the bytes of a blob; at the end of the `with` block, read the rest and check the digest.

        Raises:
          PackagesFailed: the blob does not match its digest, or has more than `max_bytes`.
        """
        digest = descriptor.get("digest") if isinstance(descriptor, dict) else None
        if not isinstance(digest, str) or not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
            raise PackagesFailed("the manifest of the image is not valid; push the set again")
        read = hashlib.sha256()

        def pieces(answer: httpx.Response) -> Iterator[bytes]:
            left = max_bytes
            for piece in answer.iter_raw(_PIECE_BYTES):
                read.update(piece)
                left -= len(piece)
                if left < 0:
                    raise _too_long(max_bytes)
                yield piece

        self._ask("HEAD", f"blobs/{digest}")  # get a token now: this request makes the registry demand authorization
        with self._client.stream("GET", self._url(f"blobs/{digest}"), headers=self._authorization) as answer:
            self._require(answer)
            found = pieces(answer)
            yield found
            for _ in found:
                pass
        if f"sha256:{read.hexdigest()}" != digest:
            raise PackagesFailed("the registry's copy of the package set is damaged: push the set again")

    def upload(self, file: IO[bytes], descriptor: dict[str, Any]) -> None:
        """Store a blob, unless the registry has it."""
        digest = descriptor["digest"]
        if self._ask("HEAD", f"blobs/{digest}", missing=True)[0].status_code == httpx.codes.OK:
            return
        begun, _ = self._ask("POST", "blobs/uploads/")
        file.seek(0)
        headers = {"Content-Length": str(descriptor["size"]), "Content-Type": "application/octet-stream"}
        place = urljoin(str(begun.url), begun.headers["location"])
        place += ("&" if "?" in place else "?") + f"digest={digest}"
        self._ask("PUT", place, headers=headers, content=lambda: iter(partial(file.read, _PIECE_BYTES), b""))

    def put_manifest(self, tag: str, body: bytes) -> None:
        self._ask("PUT", f"manifests/{tag}", headers={"Content-Type": _MANIFEST}, content=lambda: body)

    def _ask(
        self,
        method: str,
        path: str,
        *,
        headers: dict[str, str] | None = None,
        content: Callable[[], Any] = lambda: None,
        missing: bool = False,
    ) -> tuple[httpx.Response, bytes]:
        """Send a request, and a token if the registry requires one. Return the response and its body.

        If `missing` is true, a response with status 404 is returned, too, and is not an error.
        """

        def send() -> tuple[httpx.Response, bytes]:
            sent = {**(headers or {}), **self._authorization}
            return self._send(method, self._url(path), headers=sent, content=content())

        answer, body = send()
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            self._authorization = {"Authorization": self._authorize(answer.headers.get("www-authenticate", ""))}
            answer, body = send()
        if not (missing and answer.status_code == httpx.codes.NOT_FOUND):
            self._require(answer)
        return answer, body

    def _send(self, method: str, url: str, **options: Any) -> tuple[httpx.Response, bytes]:
        with self._client.stream(method, url, **options) as answer:
            return answer, _small(answer.iter_raw(_PIECE_BYTES))

    def _authorize(self, challenge: str) -> str:
        """Return the value of the `Authorization` header for a registry's `WWW-Authenticate` challenge."""
        scheme, _, rest = challenge.partition(" ")
        fields = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        if scheme.lower() == "bearer" and _is_safe(fields.get("realm", ""), self._client.base_url.scheme):
            scope = f"repository:{self._name}:pull,push" if self._user else f"repository:{self._name}:pull"
            asked = {"service": fields.get("service", ""), "scope": scope}
            answer, content = self._send("GET", fields["realm"], params=asked, auth=self._user)
            self._require(answer)
            found = _object(content)
            return f"Bearer {found.get('token') or found.get('access_token')}"
        if self._user is None:
            raise PackagesFailed("the registry needs a login: run `docker login` for it")
        return "Basic " + base64.b64encode(":".join(self._user).encode()).decode()

    def _url(self, path: str) -> str:
        return path if "://" in path else f"/v2/{self._name}/{path}"

    def _require(self, answer: httpx.Response) -> None:
        status = answer.status_code
        if status < httpx.codes.BAD_REQUEST:
            return
        said = f"the registry answers {status} to {answer.request.method} {answer.request.url.path}"
        if status >= httpx.codes.INTERNAL_SERVER_ERROR or status == httpx.codes.TOO_MANY_REQUESTS:
            raise IndexUnavailable(f"{said}; try again later")
        if status == httpx.codes.NOT_FOUND:
            raise PackagesFailed(f"{said}: there is no such image; check the name")
        denied = status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN)
        raise PackagesFailed(f"{said}; run `docker login` for it" if denied else said)


@contextmanager
def _opened(repository: str) -> Iterator[_Registry]:
    """Yield a connection to a repository's registry, which uses the credentials of `docker login`.

    Raises:
      IndexUnavailable: the registry does not answer.
      PackagesFailed: the registry's response cannot be read.
    """
    host, name = docker.auth.resolve_repository_name(repository)
    found = docker.auth.resolve_authconfig(docker.auth.load_config(), registry=host) or {}
    user = (found["username"], found["password"]) if {"username", "password"} <= found.keys() else None
    host, name = (_HUB[1], name if "/" in name else f"library/{name}") if host == _HUB[0] else (host, name)
    scheme = "http" if _LOOPBACK.fullmatch(host) else "https"
    options: dict[str, Any] = {"follow_redirects": True, "event_hooks": {"response": [_leave_refusal]}}
    plain = {"Accept-Encoding": "identity"}
    try:
        with httpx.Client(base_url=f"{scheme}://{host}", headers=plain, timeout=_TIMEOUT, **options) as client:
            yield _Registry(client, name, user)
    except httpx.HTTPError as error:
        raise IndexUnavailable(
            f"the registry {host} does not answer: {error}; check its address and the network, then try again"
        ) from error
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise PackagesFailed(f"the tar file of an image layer is damaged ({error}); push the set again") from error


def _is_safe(realm: str, scheme: str) -> bool:
    """Return whether a token may be requested at the address `realm`.

    A token may be requested if the address uses TLS, or if it is on this machine and has the same scheme as the
    registry.
    """
    try:
        url = httpx.URL(realm)
    except httpx.InvalidURL:
        return False
    return url.scheme == "https" or (url.scheme == scheme and _LOOPBACK.fullmatch(url.netloc.decode()) is not None)


def _leave_refusal(answer: httpx.Response) -> None:
    """Keep httpx from reading the whole body of a redirect or refusal."""
    if not answer.is_success and isinstance(answer.stream, httpx.SyncByteStream):
        answer.stream.close()
        answer.stream = httpx.ByteStream(b"")


def _small(pieces: Iterator[bytes]) -> bytes:
    content = b""
    for piece in pieces:
        content += piece
        if len(content) > _DOCUMENT_BYTES:
            raise _too_long(_DOCUMENT_BYTES)
    return content


def _too_long(max_bytes: int) -> PackagesFailed:
    return PackagesFailed(
        f"the registry sends more than {max_bytes >> 20} MB for a part of the image, so it is not a package set; check "
        "the name of the image"
    )


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _object(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise PackagesFailed(
            f"the registry's response is not valid: {error}; push the set again, or try later"
        ) from error
    if not isinstance(found, dict):
        raise PackagesFailed("the registry's response is not valid; push the set again, or try later")
    return found
