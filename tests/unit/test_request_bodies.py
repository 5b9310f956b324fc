"""Numbers in requests must be within the bounds of their field. Integers must also be within the bounds for all
integers.
"""

import pytest
from pydantic import TypeAdapter, ValidationError

from evaluator_host.platform.evaluators.bodies import LimitsIn
from evaluator_host.platform.http.bodies import WholeNumber


@pytest.mark.parametrize("limits", [{"memory_mb": 31}, {"processes": 0}, {"log_kb": -1}, {"memory_mb": 2**60}])
def test_a_limit_has_the_bounds_of_its_field(limits: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match=next(iter(limits))):
        LimitsIn.model_validate(limits)


@pytest.mark.parametrize("number", [-(2**60), 2**60])
def test_no_integer_is_larger_than_json_parsers_keep(number: int) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(WholeNumber).validate_python(number)
    assert TypeAdapter(WholeNumber).validate_python(number // 2**20) == number // 2**20
