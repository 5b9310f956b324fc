"""The name of a folder for temporary files says which host made it, so that a later host can remove the folders of
killed hosts.
"""

from pathlib import Path

import pytest

from evaluator_host.engine.sandbox.linux.instance import instance_folder, remove_abandoned, this_instance


@pytest.mark.parametrize("random_part", ["k3v9x2aa", "_1z1sx9q", "a_b_c_d_", "________"])
def test_a_folder_of_a_killed_host_is_removed_whatever_its_random_part_is(tmp_path: Path, random_part: str) -> None:
    killed = this_instance().rpartition("-")[0] + "-1"
    for instance in (killed, f"{killed}.7"):
        (tmp_path / f"selftest-{instance}_{random_part}").mkdir()
    with instance_folder("selftest-", tmp_path) as own:
        for foreign in ("selftest-notes_x", "selftest-host-notes_x", f"other-{killed}_{random_part}"):
            (tmp_path / foreign).mkdir()
        kept = {own.name, "selftest-notes_x", "selftest-host-notes_x", f"other-{killed}_{random_part}"}
        assert remove_abandoned("selftest-", tmp_path) == 2
        assert {path.name for path in tmp_path.iterdir()} == kept
