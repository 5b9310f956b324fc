"""Makes Debian root folders with debootstrap, once per machine, for tests that need a different system from this
machine's.
"""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

from tests.engines import ENGINE_DIR


def debian_root(suite: str, packages: str) -> Path:
    """Return the root folder of a Debian suite in which these packages (such as `python3,bubblewrap`) are installed."""
    root = ENGINE_DIR.with_name(suite)
    root.parent.mkdir(parents=True, exist_ok=True)
    made = root.with_name(f"{suite}.made")
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            shutil.rmtree(root, ignore_errors=True)
            done = subprocess.run(
                ["debootstrap", "--variant=minbase", f"--include={packages}", suite, str(root)],
                env=os.environ | {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"},
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stdout[-1500:] + done.stderr
            made.touch()
    return root
