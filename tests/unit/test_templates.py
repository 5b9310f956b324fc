"""Templates are filled in from a record. An error names a missing column, and a template that needs too much time or
memory is refused or stopped.
"""

import pytest

from evaluator_host.platform.datasets.template import RENDERED_CHARS, BadTemplate, RecordTemplate

RECORD = {
    "question": "Capital of France?",
    "n": 3,
    "tags": ["a", "b"],
    "messages": [{"role": "user", "parts": ["x", "y"]}, {"role": "tool", "parts": []}],
    "none": None,
}


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{ question }}", "Capital of France?"),
        ("{{ item.question }}", "Capital of France?"),
        ("{{item.question}}", "Capital of France?"),
        ("{{- n -}}", 3),
        ("{{ tags }}", ["a", "b"]),
        ("{{ none }}", None),
        ("{{ n }} times", "3 times"),
        (" {{ n }}", " 3"),
        ("{{ messages[0].parts[1] }}", "y"),
        ("{{ tags | join(', ') }}", "a, b"),
        ("{{ 'yes' if n > 2 else 'no' }}", "yes"),
        ("{{ n + 1 }}", 4),
        ("{{ missing | default('-') }}", "-"),
        ("{% if 'a' in tags %}has a{% endif %}", "has a"),
        ("{% for m in messages %}{{ loop.index }}:{{ m.role | upper }} {% endfor %}", "1:USER 2:TOOL "),
        ("{% for m in messages %}{% for p in m.parts %}{{ p ~ '.' }}{% endfor %}{% endfor %}", "x.y."),
        ("{{ item | tojson | length > 10 }}", True),
        ("{{ tags }}\n", "['a', 'b']\n"),
    ],
)
def test_a_template_has_the_value_of_its_one_expression_or_a_text(template: str, value: object) -> None:
    assert RecordTemplate(template).render(RECORD) == value


def test_a_column_called_item_hides_the_record() -> None:
    assert RecordTemplate("{{ item }}").render({"item": 7}) == 7


@pytest.mark.parametrize("template", ["{{ answer }}", "{{ item.answer }}", "{{ messages[9].role }}", "{{ n.x.y }} !"])
def test_a_column_that_is_missing_is_named(template: str) -> None:
    with pytest.raises(BadTemplate, match=r"undefined|has no"):
        RecordTemplate(template).render(RECORD)


def test_a_value_of_another_type_is_a_bad_record_and_no_fault() -> None:
    with pytest.raises(BadTemplate, match="TypeError"):
        RecordTemplate("{{ question + n }}").render(RECORD)


@pytest.mark.parametrize(
    "template",
    [
        "{{ 'x' * 1000000000 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ question | center(1000000000) }}",
        "{{ item | tojson(indent=1000000000) }}",
        "{{ range(1000000000) | list }}",
        "{% for a in tags %}{% for b in tags %}{% endfor %}{% endfor %}",
        "{% for a in tags %}{{ a if a in tags }}{% endfor %}",
        "{% for a in tags %}{% if tags | tojson %}{% endif %}{% endfor %}",
        "{% for a in tags %}{% for b in [tags, tags] %}{% endfor %}{% endfor %}",
        "{% for a in messages recursive %}{{ loop(a.parts) }}{% endfor %}",
        "{% set a = tags %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{{ question.__class__.__mro__ }}{{ question.upper() }}",
        "{{ cycler.__init__.__globals__ }}{{ cycler() }}",
        "{{ unknown | nothing }}",
        "{{ question ",
        "{% for %}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "x" * 70_000,
    ],
)
def test_an_unbounded_or_invalid_template_is_refused(template: str) -> None:
    with pytest.raises(BadTemplate):
        RecordTemplate(template)


@pytest.mark.parametrize("template", ["{{ question.__class__ }}", "{{ question['__class__'] }}", "{{ n.__add__ }} !"])
def test_python_attributes_of_a_value_are_out_of_reach(template: str) -> None:
    with pytest.raises(BadTemplate):
        RecordTemplate(template).render(RECORD)


@pytest.mark.parametrize(
    "template",
    [
        "{{ item" + " | tojson" * 60 + " }}",
        "{{ big | join(big) }}",
        "{{ big | replace('', big) }}",
        "{{ big" + " | join('x' ~ 'xxxxxxx')" * 8 + " }}",
        "{% for c in big %}{{ big }}{% endfor %}",
    ],
)
def test_a_result_that_grows_beyond_all_bounds_is_stopped(template: str) -> None:
    with pytest.raises(BadTemplate, match=f"longer than {RENDERED_CHARS >> 20} MB"):
        RecordTemplate(template).render({"big": '\\"' * 20_000})
