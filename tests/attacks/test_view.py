"""An evaluator in a sandbox sees neither names of its host nor secrets of the service, and sees the same things on each
host.

Two hosts start, in which every name and secret is a unique word (host name, folders, home, environment, index
credentials). Evaluators record all that they see: two evaluators of different tenants on one host, and one on the other
host. This file lists the places that may contain a word and the places that may differ; docs/sandbox.md lists the same
places for operators ("What a guest can see").
"""

import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.marked_host import LANGUAGES, Words, marked_host, view_from
from tests.ordinary_user import PROJECT

pytestmark = pytest.mark.long("this starts two hosts; test_catalogue.py has attacks on files and on /proc")
LEAST_CHARACTERS = 12  # shorter names are not checked, because they may also be ordinary words ("quiet", "core")
REAL_NAMES = ("/proc/cmdline", "/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/core_pattern", "/etc/machine-id")

# each process may read its own mountinfo, which contains the sources of bind mounts
BOUND = re.compile(r"/proc/(own|\d+)/mountinfo")
# kernel counters of the whole machine, which change all the time
COUNTERS = re.compile(
    r"/proc/(buddyinfo|cgroups|diskstats|interrupts|irq/.*|key-users|loadavg|locks|meminfo|pagetypeinfo|pressure/.*"
    r"|schedstat|slabinfo|softirqs|stat|sys/fs/.*|sys/kernel/(ns_last_pid|pty/nr|random/.*)|sys/net/.*|sys/vm/.*|uptime"
    r"|vmallocinfo|vmstat|zoneinfo|timer_list|self|thread-self)"
)
# addresses, numbers and times of the sandbox's own two processes
PROCESS = re.compile(
    r"/proc/(own|1)/(arch_status|auxv|autogroup|cgroup|environ|fd/.*|fdinfo/.*|io|ksm_.*|maps|map_files/.*|mounts|mountstats"
    r"|net/.*|ns/.*|numa_maps|oom_score|sched|schedstat|smaps.*|stack|stat|statm|status|syscall|timers|wchan|latency)"
)
# parts of a view that differ from process to process, partly because a sandbox that was started in advance has run
# other code of the runner
ANSWERS = re.compile(
    r"code|descriptors|session|(main )?process (pid|ppid|title)|(main )?report|names|stack|call sites|cache"
)


@dataclass(frozen=True)
class Seen:
    """Three views for each language: two are from one host, and one is from the other host."""

    words: Words
    views: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]
    docker: bool


@pytest.fixture(
    scope="module",
    params=["bubblewrap", "ordinary user", "docker"],
    name="seen",
)
def seen_fixture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    folder = tmp_path_factory.mktemp("hosts")
    folder.chmod(0o755)
    docker, ordinary = request.param == "docker", request.param == "ordinary user"
    backend = "docker" if docker else "bubblewrap"
    with ExitStack() as opened, ThreadPoolExecutor(2) as threads:
        hosts = [opened.enter_context(marked_host(backend, folder, ordinary=ordinary)) for _ in range(2)]
        (url, words), (other, _) = hosts
        asked = (*words.all, *real_names())
        views = {
            language: tuple(threads.map(lambda at, of=language: view_from(at, of, asked), (url, url, other)))
            for language in LANGUAGES
        }
        yield Seen(words, views, docker)  # type: ignore[arg-type]


def real_names() -> tuple[str, ...]:
    """Return the real names of this machine and of the user who runs the test."""
    texts = [Path(name).read_text().strip() for name in REAL_NAMES if Path(name).exists()]
    paths = (f"{PROJECT}/", f"{Path(sys.base_prefix).resolve()}/")
    return tuple(text for text in (*texts, *paths) if len(text) >= LEAST_CHARACTERS)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("language", list(LANGUAGES))
def test_nothing_in_view_names_the_host_or_its_secrets(seen: Seen, language: str) -> None:
    words = seen.words
    paths = {words.folder, words.data, f"{PROJECT}/", f"{Path(sys.base_prefix).resolve()}/"}
    for one in seen.views[language][:2]:
        assert one["view"]["/proc/own/status"]
        named = {
            f"{where}: {word[::-1]}"
            for where, found in one["found"].items()
            for word in found
            if seen.docker or not (BOUND.fullmatch(where) and word[::-1] in paths)
            if where != "sysconfig"  # Python's own configuration names the folder in which the interpreter was built
        }
        assert named == set()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("language", list(LANGUAGES))
def test_two_hosts_and_two_tenants_look_alike(seen: Seen, language: str) -> None:
    first, second, elsewhere = (alike(one["view"]) for one in seen.views[language])
    assert differences(first, second) == []
    assert differences(first, elsewhere) == []


def differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """Return the places where two views differ but must not."""
    expected = [
        key for pattern in (COUNTERS, PROCESS, ANSWERS) for key in one.keys() | other.keys() if pattern.fullmatch(key)
    ]
    keys = sorted((one.keys() | other.keys()) - set(expected))
    return [
        f"{key}: {one.get(key, '')[:300]!r} and {other.get(key, '')[:300]!r}"
        for key in keys
        if one.get(key) != other.get(key)
    ]


def alike(view: dict[str, str]) -> dict[str, str]:
    """Reduce a view to what is the same in all sandboxes: replace the user id, and keep only the place and type of each
    mount.
    """
    status = dict(line.split(":\t", 1) for line in view["/proc/own/status"].splitlines() if ":\t" in line)
    uid = status["Uid"].split()[0]
    plain = {key: re.sub(rf"\b{uid}\b", "UID", text) for key, text in view.items()}
    # this command line contains the number of descriptors that the host had open when it started the sandbox
    if "/proc/1/cmdline" in plain:
        plain["/proc/1/cmdline"] = re.sub(r"--args\0\d+", "--args\0N", plain["/proc/1/cmdline"])
    for key in {"/proc/own/mountinfo", "/proc/1/mountinfo"} & plain.keys():
        lines = [line.split(" ") for line in plain[key].splitlines()]
        plain[key] = "\n".join(sorted(f"{line[4]} {line[line.index('-') + 1]}" for line in lines))
    return plain
