"""Only the handler of the present request is told that the client has hung up."""

from evaluator_host.platform.http.hang_up import HangUp


def test_the_handler_that_watches_is_told_once() -> None:
    told: list[str] = []
    hang_up = HangUp()
    hang_up.watch(lambda: told.append("first"))
    hang_up.leave()
    hang_up.watch(lambda: told.append("second"))
    hang_up.happen()
    assert told == ["second"]


def test_a_handler_that_begins_after_the_hang_up_is_told_at_once() -> None:
    told: list[str] = []
    hang_up = HangUp()
    hang_up.happen()
    hang_up.watch(lambda: told.append("late"))
    assert told == ["late"]
