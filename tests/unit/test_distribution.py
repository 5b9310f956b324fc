"""The processes of a test run get the longest groups of tests first."""

from unittest.mock import Mock

import pytest

from tests.distribution import WAITING, ByGroup
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
