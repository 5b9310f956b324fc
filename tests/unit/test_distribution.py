"""The processes of a test run get the longest groups of tests first, and a run can be limited to a part of the long
tests.
"""

from unittest.mock import Mock

import pytest

from tests.distribution import WAITING, ByGroup, with_long
from tests.ordinary_user import PROJECT


def test_groups_begin_in_the_order_of_the_tests_however_many_each_has() -> None:
    tests = ["tests/jobs/test_few.py::test_long", *(f"tests/unit/test_many.py::test_{n}" for n in range(9))]
    config = Mock(spec=pytest.Config)
    config.option = Mock(loadscopereorder=True)
    config.getvalue = {"tx": ["popen"], "numprocesses": 1}.get
    groups, process = ByGroup(config, Mock()), Mock(shutting_down=False)
    groups.add_node(process)
    groups.add_node_collection(process, tests)
    groups.schedule()
    assert process.send_runtest_some.call_args_list[0].args == ([0],)


def test_groups_that_wait_are_files_that_exist() -> None:
    assert [group for group in WAITING if not (PROJECT / group).is_file()] == []


def test_a_part_of_the_long_tests_runs_with_all_others() -> None:
    names = [f"tests/unit/test_{n}.py::test_it" for n in range(9)]
    marks = {name: pytest.mark.long if n % 2 else None for n, name in enumerate(names)}
    items = [Mock(spec=pytest.Item, nodeid=name, get_closest_marker=Mock(return_value=marks[name])) for name in names]
    parts = [[item.nodeid for item in with_long(items, number, 3)] for number in (1, 2, 3)]
    assert all({name for name in names if not marks[name]} <= {*part} for part in parts)
    assert sorted(name for part in parts for name in part if marks[name]) == [name for name in names if marks[name]]
