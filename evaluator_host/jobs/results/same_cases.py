"""Whether two data sets hold the same test cases: rows by id with the same inputs, whatever an agent made of them."""

from itertools import zip_longest

from evaluator_host.datasets.criteria import is_keyed
from evaluator_host.datasets.files import RowsFolder
from evaluator_host.dialects.row_documents import CRITERIA
from evaluator_host.model.json_values import decode_json
from evaluator_host.store.datasets import Dataset


def are_same_cases(folder: RowsFolder, one: Dataset, other: Dataset) -> bool:
    """Whether rows with criteria by evaluator are the same test cases in the same order. Blocking."""
    wanted = {CRITERIA, "id"}
    if one.facts.rows != other.facts.rows or not (wanted <= {*one.facts.columns} and wanted <= {*other.facts.columns}):
        return False
    pairs = zip_longest(folder.lines(one.id), folder.lines(other.id), fillvalue=(0, b"{}"))
    return all(_is_same(decode_json(line), decode_json(line_of_other)) for (_, line), (_, line_of_other) in pairs)


def _is_same(one: dict[str, object], other: dict[str, object]) -> bool:
    if not (is_keyed(one) and is_keyed(other)) or one.get("id") is None:
        return False
    return bool(one["id"] == other.get("id")) and one["inputs"] == other["inputs"]
