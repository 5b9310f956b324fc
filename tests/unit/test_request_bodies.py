"""Numbers in requests must be within the bounds of their field. Integers must also be within the bounds for all
integers. A body with very many faults is refused after a few of them.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Final, get_args, get_origin

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from evaluator_host.platform.evaluators.bodies import EvaluateIn, EvaluatorIn, LimitsIn
from evaluator_host.platform.http.bodies import Few, WholeNumber
from evaluator_host.platform.http.json_routes import JsonRoute
from evaluator_host.types.evaluator import Evaluator
from evaluator_host.vendors.nemo.spec import OlderSpecIn, SpecIn
from tests.described import described_app

FAULTS: Final = 6000
MOST_FAULTS: Final = 2500
HOLE: Final = "HOLE"
LISTS: Final = ([1] * FAULTS, [""] * FAULTS, [{}] * FAULTS, [{f"a{n}": n for n in range(100)}] * (FAULTS // 100))
OBJECTS: Final = ({f"a{n}": n for n in range(FAULTS)}, {f"A{n}": {} for n in range(FAULTS)})


@pytest.mark.parametrize("limits", [{"memory_mb": 31}, {"processes": 0}, {"log_kb": -1}, {"memory_mb": 2**60}])
def test_a_limit_has_the_bounds_of_its_field(limits: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match=next(iter(limits))):
        LimitsIn.model_validate(limits)


@pytest.mark.parametrize("number", [-(2**60), 2**60])
def test_no_integer_is_larger_than_json_parsers_keep(number: int) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(WholeNumber).validate_python(number)
    assert TypeAdapter(WholeNumber).validate_python(number // 2**20) == number // 2**20


def bodies() -> dict[str, type[BaseModel]]:
    """Return the model of every route's body, by its name."""
    routes = [route for route in described_app().routes if isinstance(route, JsonRoute)]
    for route in routes:
        route.build()
    models = {SpecIn, OlderSpecIn, *(route.model for route in routes if route.model is not None)}
    return {f"{one.__module__}.{one.__name__}": one for one in models}


def places(kind: Any, above: frozenset[Any] = frozenset()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """For every list and object in a type, yield a body with a hole in its place, and hostile values for that hole."""
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in above:
        yield HOLE, OBJECTS
        for name, field in kind.model_fields.items():
            for body, values in places(field.annotation, above | {kind}):
                yield {field.alias or name: body}, values
        return
    origin, inner = get_origin(kind), [found for one in get_args(kind) for found in places(one, above)]
    if origin is list:
        yield HOLE, LISTS
        yield from (([body], values) for body, values in inner)
    elif origin is dict:
        yield HOLE, OBJECTS
        yield from (({"A": body}, values) for body, values in inner)
    else:
        yield from inner


def filled(body: Any, value: Any) -> Any:
    if isinstance(body, dict):
        return {name: filled(one, value) for name, one in body.items()}
    return value if body == HOLE else [filled(one, value) for one in body]


@pytest.mark.parametrize("name", sorted(bodies()))
def test_a_body_with_very_many_faults_is_refused_after_a_few(name: str) -> None:
    model, many = bodies()[name], []
    for body, values in places(model):
        for value in values:
            try:
                model.model_validate(filled(body, value))
            except ValidationError as error:
                if error.error_count() > MOST_FAULTS:
                    many.append((body, error.error_count(), str(value)[:20]))
    assert not many


def models_in(kind: Any, found: set[type[BaseModel]]) -> set[type[BaseModel]]:
    """Add every model in a type to `found`, and return `found`."""
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in found:
        found.add(kind)
        for field in kind.model_fields.values():
            models_in(field.annotation, found)
    for one in get_args(kind):
        models_in(one, found)
    return found


def test_an_object_may_have_as_many_keys_as_its_field_says() -> None:
    models = set[type[BaseModel]]()
    for body in bodies().values():
        models_in(body, models)
    few = [field for model in models for field in model.model_fields.values() if Few in field.metadata]
    limits = {limit for field in few for one in field.metadata if (limit := getattr(one, "max_length", None))}
    assert max(limits) >= 2000
    for limit in limits:
        adapter = TypeAdapter(Annotated[dict[str, int], Few])
        assert len(adapter.validate_python({f"a{number}": number for number in range(limit)})) == limit


def made(evaluator: dict[str, Any]) -> Evaluator:
    given = EvaluateIn.model_validate({"evaluator": evaluator}).evaluator
    assert isinstance(given, EvaluatorIn)
    return given.to_model()


def test_an_evaluator_that_is_sent_again_is_the_same_object() -> None:
    first, config = made({"code": "a", "settings": {"config": {"n": 1}}}), {"n": 1}
    assert made({"code": "a", "settings": {"config": config}}) is first
    for other in (1.0, True, "1"):
        assert type(made({"code": "a", "settings": {"config": {"n": other}}}).settings.config["n"]) is type(other)
    config["n"] = 2
    assert made({"code": "a", "settings": {"config": {"n": 1}}}).settings.config == {"n": 1}


@pytest.mark.parametrize("number", [1, 1 << 80])
def test_an_evaluator_that_is_refused_is_refused_again(number: int) -> None:
    for _ in range(2):
        with pytest.raises(ValidationError, match=r"evaluator\.<object>\.thresholds") as refused:
            EvaluateIn.model_validate({"evaluator": {"code": "a", "thresholds": number}})
        assert refused.value.error_count() == 1


def test_only_few_and_small_evaluators_of_earlier_requests_are_kept() -> None:
    for number in range(300):
        made({"code": f"{number}"})
    assert made({"code": "0"}) is not made({"code": "0", "threshold": None})
    large = {"code": "x" * (17 << 10)}
    assert made(large) is not made(large)
    many = {"code": "", "settings": {"config": {"objects": [{}] * 5000}}}
    assert made(many) is not made(many)
