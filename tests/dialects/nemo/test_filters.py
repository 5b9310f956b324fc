"""Lists can be filtered in every form that NeMo's client sends."""

from typing import Any

import pytest

from evaluator_host.types.errors import InvalidRequest
from evaluator_host.vendors.nemo.filters import fields, filtered, read_filter
from evaluator_host.vendors.nemo.names import page

FIELDS = fields("purpose", "status", "project", storage_type="storage.type")
THINGS = [
    {"name": "sums", "purpose": "dataset", "status": "error", "created_at": "2026-01-01T00:00:00Z"},
    {"name": "Sums%2", "purpose": "generic", "status": "completed", "created_at": "2026-02-01T00:00:00Z"},
    {"name": "words", "project": None, "storage": {"type": "local"}, "created_at": "2026-03-01T00:00:00.5Z"},
]


def names(*query: tuple[str, str]) -> list[str]:
    keep = read_filter(query, FIELDS)
    assert keep is not None
    return [str(thing["name"]) for thing in THINGS if keep(thing)]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ([("filter[name]", "sums")], ["sums"]),
        ([("filter[name]", "sum")], []),
        ([("filter[name][$eq]", "words")], ["words"]),
        ([("filter[name][$like]", "SUM")], ["sums", "Sums%2"]),
        ([("filter[name][$like]", "%")], ["Sums%2"]),
        ([("filter[name][$in]", "sums,words,other")], ["sums", "words"]),
        ([("filter[purpose][$nin]", "dataset")], ["Sums%2"]),
        ([("filter[status]", "error,completed")], ["sums", "Sums%2"]),
        ([("filter[storage_type]", "local")], ["words"]),
        ([("filter[name][$like]", "s"), ("filter[purpose]", "dataset"), ("page", "2")], ["sums"]),
        ([("filter[created_at][$gte]", "2026-02-01")], ["Sums%2", "words"]),
        ([("filter[created_at][$lte]", "2026-02-01T01:00:00+01:00")], ["sums", "Sums%2"]),
        ([("filter[created_at][$gt]", "2026-01-01"), ("filter[created_at][$lt]", "2026-03-01")], ["Sums%2"]),
        ([("filter", '{"name": {"$like": "sum"}, "purpose": "generic"}')], ["Sums%2"]),
        ([("filter", '{"project": null}')], ["sums", "Sums%2", "words"]),
        ([("filter", '{"$or": [{"name": "words"}, {"status": {"$in": ["error"]}}]}')], ["sums", "words"]),
        ([("filter", '{"$not": {"$and": [{"name": {"$like": "sum"}}, {"status": "error"}]}}')], ["Sums%2", "words"]),
    ],
)
def test_a_filter_selects_the_right_entries(query: list[tuple[str, str]], found: list[str]) -> None:
    assert names(*query) == found


@pytest.mark.parametrize(
    ("query", "where", "said"),
    [
        (("filter[size]", "3"), "filter[size]", "can be filtered by name, purpose, status, project, created_at"),
        (("filter[name][$near]", "x"), "filter[name][$near]", r"compared only with \$eq, \$in, \$nin, \$like"),
        (("filter[name][$gt]", "x"), "filter[name][$gt]", r"compared only with \$eq"),
        (("filter[created_at][$like]", "2026"), "filter[created_at][$like]", r"\$nin, \$lt, \$lte"),
        (("filter[created_at]", "soon"), "filter[created_at]", "'soon' is not a time"),
        (("filter.name", "x"), "filter.name", r"write filter\[name\]"),
        (("filter", 'name:"x"'), "filter", "must be a JSON object"),
        (("filter", "{}"), "filter", "at least one key"),
        (("filter", "[1]"), "filter", "must be a JSON object"),
        (("filter", '{"$or": [], "name": "x"}'), "filter", "combine it with the others by "),
        (("filter", '{"$or": {}}'), "filter", "needs a list"),
        (("filter", '{"name": {"$in": 3}}'), "filter[name][$in]", "give several values"),
        (("filter", '{"name": {"$like": null}}'), "filter[name][$like]", r"null can be compared only with \$eq"),
        (("filter", '{"$not": ' * 20 + '{"name": "x"}' + "}" * 20), "filter", "more than 8 levels"),
    ],
)
def test_a_query_that_is_not_a_filter_of_the_list_is_refused_by_its_place(
    query: tuple[str, str], where: str, said: str
) -> None:
    with pytest.raises(InvalidRequest, match=said) as refused:
        read_filter([query], FIELDS)
    assert [problem.field for problem in refused.value.problems] == [where]


def test_a_query_without_a_filter_selects_everything() -> None:
    assert read_filter([("page", "1"), ("sort", "name")], FIELDS) is None


async def test_pages_contain_only_selected_entries() -> None:
    things = [{"name": f"n{number}", "status": "error" if number % 2 else "active"} for number in range(250)]

    async def fetch(*, number: int, size: int) -> dict[str, Any]:
        return page(things[(number - 1) * size :][:size], number=number, size=size, total=len(things), sort="name")

    keep = read_filter([("filter[status]", "error")], FIELDS)
    second = await filtered(fetch, keep, number=2, size=100)
    assert [one["name"] for one in second["data"]] == [f"n{number}" for number in range(201, 250, 2)]
    assert second["pagination"] == {
        "page": 2,
        "page_size": 100,
        "current_page_size": 25,
        "total_pages": 2,
        "total_results": 125,
    }
    assert (await filtered(fetch, None, number=1, size=3))["data"] == things[:3]
