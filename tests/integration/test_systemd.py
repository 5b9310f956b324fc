"""The service in docs/install.md runs on a new machine, which is a Debian that debootstrap made, with systemd as its
first process.
"""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.debian import debian_root
from tests.install_page import commands_of

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = "ca-certificates,curl,python3,python3-venv,bubblewrap,systemd,systemd-sysv"
pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]


@pytest.mark.long("this installs and boots a Debian; test_deploy.py tests the unit file itself")
def test_the_service_of_the_page_scores_on_a_new_machine(tmp_path: Path) -> None:
    debian = debian_root("trixie", PACKAGES)
    subprocess.run(["make", "dist"], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (ROOT / "dist").glob("evaluator_host-*.whl")
    shutil.copy(wheel, tmp_path)
    page = [*commands_of("As a systemd service"), *commands_of("As a systemd service", 1)]
    (tmp_path / "commands").write_text("\n".join([*page, ""]))
    ended = subprocess.run(["sh", ROOT / "tests/boot_debian", debian, tmp_path], timeout=1000)
    assert ended.returncode == -signal.SIGINT, (
        "systemd must have powered the machine off; the kernel then ends its process 1 with SIGINT"
    )
    printed = (tmp_path / "printed").read_text()
    assert '"status":"scored","score":1.0' in printed, printed
