"""A judge whose prompt reads a column that no row has is refused before a job starts, with the mapping to give."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from evaluator_host.client import Client
from evaluator_host.platform.evaluators.ready_judges import ready_judges
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Evaluator
from evaluator_host.types.jobs import JobStatus, Target
from tests.model_server import ModelServer, Reply
from tests.models.conftest import KEY
from tests.models.test_host import command
from tests.server import FORKED, Server, new_home

READY = {one.name: one for one in ready_judges()}
ROWS = [
    {"id": n, "question": f"How many is {n}?", "topic": "numbers", "expected": f"{n}", "answer": f"It is {n}."}
    for n in range(4)
]
WANTED = "--map outputs=answer --map inputs.reference=expected"


def _answer(question: str, _: int) -> Reply:
    content = json.dumps({"reason": question[:20], "score": "correct"})
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    body = {"id": "1", "object": "chat.completion", "model": "real", "choices": [choice], "usage": usage}
    return Reply(200, json.dumps(body).encode(), {"Content-Type": "application/json"})


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = new_home(tmp_path_factory.mktemp("prompts"))
    with ModelServer(key=KEY, faults=_answer) as models:
        environment = {
            **FORKED,
            "EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{home / 'evaluator-host.db'}",
            "EVALUATOR_HOST_MODELS": json.dumps({"judge": {"base_url": models.url, "model": "real", "key": KEY}}),
        }
        with Server(data_dir=home, log=home.parent / "log", environment=environment) as running:
            with Client(running.url) as client:
                client.evaluators.create("judge-correct", judge(READY["correctness"].judge))
                client.datasets.upload("answers", ROWS)
            yield running


def judge(form: dict[str, Any], **changes: Any) -> Evaluator:
    return Evaluator("", judge={**form, "model": "judge", **changes})


@pytest.mark.engine
@pytest.mark.timeout(200)
class TestOnAHost:
    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(
        "mapping", [{}, {"outputs": "answer"}, {"outputs": "answer", "correct_answer": "expected"}]
    )
    def test_a_job_is_refused_with_the_whole_mapping(self, host: Server, mapping: dict[str, str]) -> None:
        with Client(host.url) as client, pytest.raises(InvalidRequest) as refused:
            client.jobs.create(["judge-correct"], "answers", mapping=mapping)
        said = str(refused.value)
        assert "the prompt of judge-correct@1 reads `reference`, which no row of answers has" in said
        assert "did you mean inputs.reference=expected?" in said
        hint = refused.value.problems[0].hint or ""
        assert "--map outputs=answer" in hint
        assert "--map inputs.reference=expected" in hint
        assert '"inputs.reference": "expected"}' in hint

    @pytest.mark.long
    def test_the_mapping_in_the_error_works_on_the_command_line(self, host: Server) -> None:
        given = ("jobs", "create", "-e", "judge-correct", "-d", "answers", "--wait")
        assert WANTED in command(host, *given, "--map", "outputs=answer", code=2)
        assert "judge-correct@1: 4 rows, 4 scored, 0 failed" in command(host, *given, *WANTED.split())

    @pytest.mark.long
    def test_a_job_whose_outputs_come_from_a_model_is_refused(self, host: Server) -> None:
        target = Target(f"{host.url}/v1", "m", prompt_template="{{ question }}")
        with Client(host.url) as client, pytest.raises(InvalidRequest, match=r"inputs\.reference=expected") as refused:
            client.jobs.create(["judge-correct"], "answers", target=target)
        assert "outputs=" not in str(refused.value.problems)

    def test_the_host_suggests_the_columns_of_a_prompt(self, host: Server) -> None:
        asked = {"evaluators": ["judge-correct"], "dataset": "answers"}
        advice = httpx.post(f"{host.url}/v1/jobs/mapping", json=asked).json()
        assert advice["mapping"] == {"outputs": "answer", "inputs.reference": "expected"}
        assert advice["reads"][0]["inputs"] == ["question", "reference"]

    @pytest.mark.long
    def test_rows_of_the_api_are_mapped_inside_their_inputs(self, host: Server) -> None:
        rows = [{"inputs": {"question": "q", "expected": "e"}, "outputs": "a"}]
        with Client(host.url) as client:
            with pytest.raises(InvalidRequest, match=r"did you mean inputs\.reference=inputs\.expected\?"):
                client.jobs.create(["judge-correct"], rows)
            job = client.jobs.create(["judge-correct"], rows, mapping={"inputs.reference": "inputs.expected"})
            assert client.jobs.wait(job.id).status is JobStatus.COMPLETED

    def test_a_failed_row_has_the_hint(self, host: Server) -> None:
        with Client(host.url) as client:
            result = client.evaluate("judge-correct", inputs={"question": "q", "expected": "e"}, outputs="a")
        assert result.error is not None
        assert result.error.hint == (
            "the row lacks `reference`, which the prompt reads: --map inputs.reference=expected "
            '(in JSON, "mapping": {"inputs.reference": "expected"})'
        )

    @pytest.mark.sampled(16)
    @pytest.mark.parametrize(
        ("prompt", "reads"),
        [
            ("{{ question }} {{ item.reference }} {{ output }}", ["question", "reference"]),
            ("{{ inputs['the gold'] }}{{ outputs }}", ["the gold"]),
            ("{% if inputs.reference is defined %}{{ inputs.reference }}{% endif %}{{ outputs }}", []),
            ("{{ inputs.reference | default('none') }}{{ outputs }}", []),
            ("{% for one in inputs.documents %}{{ one.title }}{{ inputs.query }}{% endfor %}", ["documents"]),
            ("{{ inputs.get('reference') }}{{ inputs | tojson }}{{ trace }}", []),
            ("{% set a = inputs.x %}{{ a }}{{ range(2) | list }}{{ inputs.question and inputs.y }}", ["x", "question"]),
            ("{% set item = inputs.case %}{{ item.title }}{{ outputs }}", ["case"]),
            ("{% with item = inputs.case %}{{ item.title }}{% endwith %}{{ outputs }}", ["case"]),
            ("{% for item in [{'title': 1}] %}{% endfor %}{{ item.question }}{{ topic }}{{ outputs }}", ["topic"]),
            ("{% macro of(item) %}{{ item.title }}{% endmacro %}{{ of({'title': 1}) }}{{ outputs }}", []),
            ("{% macro inputs(a) %}{{ a }}{% endmacro %}{{ inputs(item.topic) }}{{ outputs }}", ["topic"]),
            ("{% set topic = topic | default('any') %}{{ topic }}{{ inputs.question }}{{ outputs }}", ["question"]),
            ("{% if context is string %}{{ context }}{% else %}none{% endif %}{{ outputs }}", []),
            ("{{ inputs.context is none }}{{ item.more is mapping }}{{ n is number }}{{ outputs }}", []),
            ("{{ 'text' if inputs.context is not sequence else inputs.context | join }}{{ outputs }}", []),
        ],
    )
    def test_a_check_lists_what_a_prompt_needs(self, host: Server, prompt: str, reads: list[str]) -> None:
        with Client(host.url) as client:
            report = client.check(judge({}, prompt=prompt))
        assert report.ok, report.problems
        assert sorted(report.reads.inputs) == sorted(reads)
        assert bool(report.reads.outputs) is ("output" in prompt)

    @pytest.mark.sampled(6)
    @pytest.mark.parametrize(
        "prompt",
        [
            "{% set item = inputs.case %}{{ item.title }}",
            "{% with item = inputs.case %}{{ item.title }}{% endwith %}",
            "{% for item in [inputs.case] %}{{ item.title }}{% endfor %}",
            "{% macro of(item) %}{{ item.title }}{% endmacro %}{{ of(inputs.case) }}",
            "{% if context is string %}{{ context }}{% else %}no context{% endif %}",
            "{{ inputs.context is none }}{{ item.context is boolean }}",
        ],
    )
    def test_a_prompt_that_every_row_can_render_is_not_refused(self, host: Server, prompt: str) -> None:
        form = judge(READY["correctness"].judge, prompt=f"{prompt} {{{{ outputs }}}}")
        with Client(host.url) as client:
            job = client.jobs.create([form], [{"case": {"title": "t"}, "outputs": "a"}])
            assert client.jobs.wait(job.id).status is JobStatus.COMPLETED
            (statistics,) = client.jobs.results(job.id).evaluators
        assert (statistics.scored, statistics.failed) == (1, 0)

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("stored", [True, False])
    def test_a_column_that_only_a_late_row_has_is_not_refused(self, host: Server, stored: bool) -> None:
        flat: list[dict[str, Any]] = [{"question": "q", "outputs": "a"} for _ in range(100)]
        nested: list[dict[str, Any]] = [{"inputs": {"question": "q"}, "outputs": "a"} for _ in range(100)]
        late = [
            [*flat, {"question": "q", "reference": "r", "outputs": "a"}],
            [*nested, {"inputs": {"question": "q", "reference": "r"}, "outputs": "a"}],
            [*flat, {"inputs": {"question": "q", "reference": "r"}, "outputs": "a"}],
        ]
        with Client(host.url) as client:
            for number, rows in enumerate(late):
                if stored:
                    client.datasets.upload(f"late-{number}", rows)
                client.jobs.create(["judge-correct"], f"late-{number}" if stored else rows)

    @pytest.mark.parametrize("stored", [True, False])
    def test_a_column_that_no_row_of_many_has_is_refused(self, host: Server, stored: bool) -> None:
        rows = [{"question": "q", "expected": "e", "outputs": "a"} for _ in range(101)]
        with Client(host.url) as client:
            if stored:
                client.datasets.upload("many", rows)
            with pytest.raises(InvalidRequest, match=r"did you mean inputs\.reference=expected\?"):
                client.jobs.create(["judge-correct"], "many" if stored else rows)

    def test_an_example_that_lacks_a_column_is_named_when_the_judge_loads(self, host: Server) -> None:
        form = judge({}, prompt="{{ inputs.a }} {{ outputs }}", examples=[{"inputs": {"b": 1}, "answer": 1}])
        with Client(host.url) as client:
            (problem,) = client.check(form).problems
        assert "example 1 of the judge does not fit its prompt" in problem.message

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(
        ("prompt", "warned"),
        [
            ("{{ inputs.reference }} {{ outputs }}", True),
            ("{% if inputs.reference %}{{ inputs.reference }}{% endif %}{{ outputs }}", False),
            ("{{ inputs.question }} {{ outputs }}", False),
        ],
    )
    def test_an_empty_expected_answer_is_reported(self, host: Server, prompt: str, warned: bool) -> None:
        form = judge(READY["correctness"].judge, prompt=prompt)
        with Client(host.url) as client:
            result = client.evaluate(form, inputs={"question": "q", "reference": " "}, outputs="a")
        assert result.error is None
        assert ("empty_expected" in [one.code for one in result.warnings]) is warned

    def test_a_job_without_outputs_is_refused(self, host: Server) -> None:
        with Client(host.url) as client, pytest.raises(InvalidRequest, match="did you mean outputs=answer"):
            client.jobs.create(["judge-correct"], "answers", mapping={"inputs.reference": "expected"})

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize(
        ("form", "threshold", "hint"),
        [
            (READY["correctness"].judge, 80, "did you mean 0.8?"),
            ({"prompt": "{{ outputs }}"}, 80, "did you mean 0.8?"),
            ({"prompt": "{{ outputs }}", "scale": {"min": 1, "max": 5}}, 80, "give a number from 1 to 5"),
            ({"prompt": "{{ outputs }}", "scale": {"min": 1, "max": 5}}, 0.8, "give a number from 1 to 5"),
        ],
    )
    def test_a_threshold_outside_the_scale_of_a_judge_is_refused(
        self, host: Server, form: dict[str, Any], threshold: float, hint: str
    ) -> None:
        with Client(host.url) as client, pytest.raises(InvalidRequest, match="the threshold") as refused:
            client.evaluators.create("too-high", replace(judge(form), threshold=threshold))
        assert refused.value.problems[0].hint == hint

    def test_a_threshold_of_code_is_reported_when_it_is_stored_and_checked(self, host: Server, tmp_path: Path) -> None:
        file = tmp_path / "half.py"
        file.write_text("def evaluate(inputs, outputs, trace):\n    return 0.5\n")
        printed = command(host, "evaluators", "create", "half", str(file), "--threshold", "80")
        assert "half@1" in printed
        assert "did you mean 0.8?" in printed
        with Client(host.url) as client:
            notes = client.check(client.evaluators.get("half").evaluator).notes
        assert [(one.code, one.remedy) for one in notes] == [("threshold_out_of_range", "did you mean 0.8?")]
