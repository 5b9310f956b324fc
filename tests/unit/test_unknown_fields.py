"""If a row in a request has an unknown field, the hint names the field that was probably meant.

If there is no such field, the hint says that columns go into `inputs`.
"""

import pytest

from evaluator_host.platform.http.error_responses import invalid_request


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("question", 'a column goes into `inputs`: {"inputs": {"question": …}}'),
        ("name", 'a column goes into `inputs`: {"inputs": {"name": …}}'),
        ("output", "did you mean outputs?"),
        ("prediction", "did you mean outputs?"),
        ("inptus", "did you mean inputs?"),
    ],
)
def test_an_unknown_field_of_a_row_is_a_misspelt_one_or_a_column(name: str, hint: str) -> None:
    fault = {"type": "extra_forbidden", "loc": ("body", "rows", 0, name), "msg": "Extra inputs are not permitted"}
    [problem] = invalid_request([fault]).problems
    assert (problem.field, problem.hint) == (f"rows.0.{name}", hint)
