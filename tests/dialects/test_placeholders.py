"""Code fails only when it uses a name that the host's small replacement of a package lacks. The error names the package
to pin.
"""

import re

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, Language, Row
from tests.conftest import ON_BUBBLEWRAP

SCORER = "\n@scorer\ndef mine(outputs):\n    {}\n    return 1.0\n"
ROW = Row({}, "4")
MLFLOW = "from mlflow.genai.scorers import Guidelines, scorer\n"


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "top",
    [
        MLFLOW,
        "import mlflow\nfrom mlflow.genai.scorers import Guidelines, scorer\nmlflow.set_tracking_uri('http://tracking')\n",
        MLFLOW + "judges = [Guidelines(name='kind', guidelines='Be kind.')]\n",
        MLFLOW + "class Kind(Guidelines):\n    level = 2\n",
        "import mlflow.gateway.config\nfrom mlflow.genai.scorers import scorer\n",
        "from mlflow.genai.scorers import *\nfrom mlflow.genai.datasets import create_dataset\n",
    ],
)
@ON_BUBBLEWRAP
async def test_an_unused_placeholder_stops_nothing(service: Service, top: str) -> None:
    result = await service.evaluate(Evaluator(top + SCORER.format("")), ROW)
    assert (result.score, result.error) == (1.0, None)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "use", ["Guidelines(name='kind')", "Guidelines.name", "list(Guidelines)", "class Kind(Guidelines): pass", "Kind()"]
)
@ON_BUBBLEWRAP
async def test_an_error_on_a_missing_name_names_the_pin(service: Service, use: str) -> None:
    code = MLFLOW + "class Kind(Guidelines):\n    pass\n" + SCORER.format(use)
    error = (await service.evaluate(Evaluator(code), ROW)).error
    assert error is not None
    assert (error.code, error.type, error.line) == ("user_exception", "ImportError", 7)
    assert "mlflow.genai.scorers.Guidelines" in error.message
    assert error.hint == "add mlflow==3.17.2 to `packages`"


@ON_BUBBLEWRAP
async def test_the_result_says_what_was_not_loaded(service: Service) -> None:
    code = "import openai\n" + MLFLOW + "client = openai.OpenAI()\n" + SCORER.format("")
    found = await service.evaluate(Evaluator(code), ROW)
    assert found.not_loaded == ("openai", "mlflow.genai.scorers.Guidelines")
    assert (await service.check(Evaluator(code))).not_loaded == found.not_loaded


OWN = "from src.config import settings\nimport helpers\n\ndef other(path):\n    return settings.read(path)\n"


BESIDE = (
    "from __future__ import annotations\nimport json\n{}\n\ndef other(row: Row) -> dict:\n    return json.loads(row)\n"
)
EXACT = "\ndef exact(row: Row, output: str, expected: str) -> bool:\n    return output == expected\n"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "code",
    [
        OWN + "\ndef exact(output, expected):\n    return output == expected\n",
        "from conf import MODEL\nJUDGE = f'models:/{MODEL}'\n\ndef exact(output, expected):\n    return output == expected\n",
        (
            "from src.llm import chat\nWANTED = ['4']\n\ndef exact(output):\n    return output in WANTED\n\n"
            "def judged(output):\n    return chat(WANTED)\n\nPLAIN = [exact]\nALL = {'all': PLAIN + [judged]}\n"
        ),
        (
            "from conf import MODEL\n\ndef exact(output):\n    names = {}\n    exec('found = 4', names)\n"
            "    return names['found'] == eval(output, {}, names)\n"
        ),
        BESIDE.format("from .rows import Row") + EXACT,
        BESIDE.format("from ..app.rows import (\n    Row,\n)") + EXACT,
        BESIDE.format("from . import rows\nRow = rows.Row") + EXACT,
        BESIDE.format("try:\n    from .rows import Row\nexcept ImportError:\n    from rows import Row") + EXACT,
    ],
)
@ON_BUBBLEWRAP
async def test_a_file_of_the_author_that_nothing_uses_stops_nothing(service: Service, code: str) -> None:
    result = await service.evaluate(Evaluator(code), Row({"row": "r", "correct_answer": "4"}, "4"))
    assert (result.score, result.error) == (1.0, None)
    absent = (("src.config", "helpers"), ("conf",), ("src.llm",), (".rows",), ("..app.rows",), (".",), ("rows",))
    assert result.not_loaded in absent


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "code",
    [
        "import helpers\n\ndef exact(output, expected):\n    return helpers.norm(output) == expected\n",
        "import helpers\n\ndef exact(output, expected):\n    try:\n        return helpers.norm(output)\n    except Exception:\n        return 0.0\n",
        "import helpers\nclient = helpers.make()\n\ndef exact(output, expected):\n    return client.ask(output)\n",
        "from helpers import *\n\ndef exact(output, expected):\n    return output == expected\n",
        "import helpers\n\ndef exact(output, expected):\n    return eval('helpers.norm(output)')\n",
        "import helpers\n\ndef exact(output, expected):\n    return eval('helpers.norm(4)', globals())\n",
        "import helpers\n\ndef exact(output, expected):\n    return eval('norm(4)', {'norm': helpers.norm})\n",
        "import helpers\n\ndef exact(output, expected):\n    return eval('helpers.norm(4)', None, {})\n",
        "import helpers\n\ndef eval(one, two):\n    return helpers.norm(one) == two\n\ndef exact(output, expected):\n    return eval(output, expected)\n",
    ],
)
@ON_BUBBLEWRAP
async def test_a_file_of_the_author_that_the_evaluator_uses_is_asked_for(service: Service, code: str) -> None:
    error = (await service.evaluate(Evaluator(code), Row({"correct_answer": "4"}, "4"))).error
    assert error is not None
    assert (error.code, error.message) == ("load_error", "No module named 'helpers'")
    assert '{"helpers.py": "…"}' in (error.hint or "")


@ON_BUBBLEWRAP
async def test_a_file_beside_the_code_that_the_evaluator_uses_is_asked_for(service: Service) -> None:
    code = BESIDE.format("from .rows import Row, norm") + EXACT.replace("output ==", "norm(output) ==")
    error = (await service.evaluate(Evaluator(code), Row({"correct_answer": "4"}, "4"))).error
    assert error is not None
    assert (error.code, error.line) == ("load_error", 3)
    assert '{"evals/rows.py": "…"}' in (error.hint or "")


@ON_BUBBLEWRAP
async def test_of_several_evaluators_only_those_fail_that_use_what_is_absent(service: Service) -> None:
    code = (
        "import helpers\n\ndef near(output, expected):\n    return helpers.norm(output) == expected\n\n"
        "def exact(output, expected):\n    return output == expected\n"
    )
    result = await service.evaluate(Evaluator(code), Row({"correct_answer": "4"}, "4"))
    assert (result.score, result.metrics) == (1.0, {"exact": 1.0})
    assert "near: No module named 'helpers'" in [one.message for one in result.warnings]


@ON_BUBBLEWRAP
async def test_a_score_that_was_made_up_without_a_file_does_not_count(service: Service) -> None:
    code = (
        "import { ask } from './judge.js';\n"
        "export const same = ({ output, expected }) => (output === expected ? 1 : 0);\n"
        "export async function judged({ output, expected }) {\n"
        "  try { return await ask(output, expected) } catch { return 0 }\n}\n"
    )
    row = Row(variables={"output": "4", "expected": "4"})
    result = await service.evaluate(Evaluator(code, Language.JAVASCRIPT), row)
    assert (result.score, "judged" in result.metrics) == (1.0, False)
    assert any(one.code == "entry_failed" and "./judge.js" in one.message for one in result.warnings)


@pytest.mark.long
@ON_BUBBLEWRAP
async def test_of_rewards_that_are_added_up_each_is_needed(service: Service) -> None:
    code = (
        "import numpy as np\n\ndef first(completions):\n    return [1.0 for _ in completions]\n\n"
        "def second(completions):\n    return [float(np.mean([1])) for _ in completions]\n"
    )
    error = (await service.evaluate(Evaluator(code), Row({"question": "q"}, "4"))).error
    assert error is not None
    assert (error.code, error.message) == ("load_error", "No module named 'numpy'")


ASKING = "import {0}\n\ndef judged(output, expected):\n    try:\n        return {1}\n    except Exception:\n        return 0.5\n"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("package", "asked"),
    [
        ("urllib.request", "urllib.request.urlopen('https://api.judge.invalid/v1').status"),
        ("socket", "socket.create_connection(('api.judge.invalid', 443)).fileno()"),
        ("asyncio", "asyncio.run(asyncio.open_connection('api.judge.invalid', 443))"),
        ("urllib.request", "urllib.request.urlopen('http://localhost:11434/api/generate').status"),
        ("socket", "socket.create_connection(('127.0.0.1', 11434)).fileno()"),
        ("asyncio", "asyncio.run(asyncio.open_connection('127.0.0.1', 11434))"),
    ],
)
@ON_BUBBLEWRAP
async def test_an_answer_made_up_without_network_is_reported(service: Service, package: str, asked: str) -> None:
    code = ASKING.format(package, asked)
    host = "api.judge.invalid" if "judge" in asked else "127.0.0.1:11434"
    told = f"the code could not reach {host}, and goes on without an answer"
    alone = await service.evaluate(Evaluator(code), Row({"correct_answer": "4"}, "4"))
    assert (alone.score, [(one.code, one.message) for one in alone.warnings]) == (0.5, [("unreachable", told)])
    code += "\ndef exact(output, expected):\n    return output == expected\n"
    both = await service.evaluate(Evaluator(code), Row({"correct_answer": "4"}, "4"))
    assert (both.score, both.metrics) == (1.0, {"exact": 1.0})
    assert f"judged: {told}" in [one.message for one in both.warnings]


OF_A_CONTEXT = """
from pydantic_evals.evaluators import Evaluator

class Same(Evaluator):
    def evaluate(self, ctx):
        return ctx.output == ctx.expected_output
"""
OF_METADATA = (
    OF_A_CONTEXT.replace("ctx.expected_output", "wanted(ctx)")
    + """
def wanted(ctx):
    return (ctx.metadata or {}).get("wanted", ctx.expected_output)
"""
)


@pytest.mark.parametrize("code", [OF_A_CONTEXT, OF_METADATA])
async def test_the_hint_for_a_class_of_pydantic_evals_leads_to_a_score(service: Service, code: str) -> None:
    files = {"pydantic_evals/__init__.py": "", "pydantic_evals/evaluators.py": "class Evaluator:\n    pass\n"}
    row = Row({"correct_answer": "4"}, "4")
    error = (await service.evaluate(Evaluator(code, files=files), row)).error
    assert error is not None
    assert error.hint is not None
    made = re.search("add `(def .*?)` and `(import types)`", error.hint)
    assert made is not None
    found = await service.evaluate(Evaluator("\n".join((code, made[2], made[1])), files=files), row)
    assert (found.score, found.passed) == (1.0, True)


FAILING = """
import socket

def judged(output, expected):
    try:
        socket.create_connection(("127.0.0.1", 11434))
    except OSError:
        raise ValueError("no credentials")

def exact(output, expected):
    return output == expected
"""


@ON_BUBBLEWRAP
async def test_a_host_that_an_evaluator_asked_before_it_failed_counts_for_no_other(service: Service) -> None:
    found = await service.evaluate(Evaluator(FAILING), Row({"correct_answer": "4"}, "4"))
    assert (found.score, found.metrics) == (1.0, {"exact": 1.0})
    failed = [one.message for one in found.warnings if one.code == "entry_failed"]
    assert failed == ["judged: no credentials"]


ASKING_NODE = "async function evaluate(inputs, outputs, trace) {{ try {{ return {} }} catch {{ return 0.5 }} }}"
GETTING = (
    "await new Promise((ok, no) => require('{0}').get('{0}://{1}/', (found) => ok(found.statusCode)).on('error', no))"
)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("asked", "host"),
    [
        ("(await fetch('https://api.judge.invalid/v1')).status", "api.judge.invalid"),
        ("(await fetch('http://localhost:11434/api/generate')).status", "127.0.0.1:11434"),
        ("await new Promise((ok, no) => { new WebSocket('ws://127.0.0.1:11434').onerror = no })", "127.0.0.1:11434"),
        (GETTING.format("https", "api.judge.invalid"), "api.judge.invalid"),
        (GETTING.format("http", "localhost:11434"), "127.0.0.1:11434"),
    ],
)
@ON_BUBBLEWRAP
async def test_an_answer_made_up_in_javascript_is_reported(service: Service, asked: str, host: str) -> None:
    told = f"the code could not reach {host}, and goes on without an answer"
    for returned in (asked, f"[{asked}, console.log(1)][0], {{ score: 2 }}"):
        code = ASKING_NODE.format(returned)
        found = await service.evaluate(Evaluator(code, language=Language.JAVASCRIPT), Row({}, "4"))
        assert (found.score, [(one.code, one.message) for one in found.warnings]) == (0.5, [("unreachable", told)])


SERVED = """
import http.server, threading, time, urllib.request

def evaluate(inputs, outputs, trace):
    def answer(self):
        self.send_response(200)
        self.end_headers()

    def serve():
        time.sleep(0.3)
        handler = type("Handler", (http.server.BaseHTTPRequestHandler,), {"do_GET": answer})
        http.server.HTTPServer(("127.0.0.1", 11434), handler).handle_request()

    threading.Thread(target=serve, daemon=True).start()
    while True:
        try:
            return urllib.request.urlopen("http://127.0.0.1:11434/").status == 200
        except OSError:
            time.sleep(0.05)
"""


@ON_BUBBLEWRAP
async def test_a_host_that_answers_later_is_not_told(service: Service) -> None:
    found = await service.evaluate(Evaluator(SERVED), Row({}, "4"))
    assert (found.score, found.warnings) == (1.0, ())


EXACT_BESIDE = "\ndef exact(output, expected):\n    return output == expected\n"
JUDGED = "\ndef judged(output, expected):\n    "


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("top", "body", "name"),
    [
        (
            "import openai\nclient = openai.OpenAI()\n",
            "try:\n        return client.models.list()\n    except Exception:\n        return 0.5\n",
            "openai",
        ),
        (
            "import openai\ndef ask(text):\n    return openai.OpenAI().models.list()\n",
            "try:\n        found = ask(output)\n    except Exception as error:\n        found = 0.5\n    return found\n",
            "openai",
        ),
        (
            "",
            "try:\n        from agents.llm import judge\n        return judge(output)\n    except:\n        return 0.5\n",
            "agents",
        ),
        (
            "def ask(text):\n    from agents.llm import judge\n    return judge(text)\n",
            "scores = []\n    try:\n        scores.append(ask(output))\n    except Exception:\n        pass\n    return len(scores)\n",
            "agents",
        ),
    ],
)
@ON_BUBBLEWRAP
async def test_of_several_evaluators_one_that_hides_what_it_lacks_does_not_count(
    service: Service, top: str, body: str, name: str
) -> None:
    code = top + EXACT_BESIDE + JUDGED + body
    found = await service.evaluate(Evaluator(code), Row({"correct_answer": "4"}, "4"))
    assert (found.score, found.metrics) == (1.0, {"exact": 1.0})
    told = next(one for one in found.warnings if one.code == "entry_failed")
    assert told.message.startswith(f"judged: it needs `{name}")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "body",
    [
        "try:\n        import agents\n    except ImportError:\n        return 0.5\n    return agents.judge(output)\n",
        "try:\n        from agents import judge\n    except Exception:\n        return 0.5\n    return judge(output)\n",
        "try:\n        client.send(output)\n    except Exception:\n        pass\n    return 0.5\n",
        "try:\n        sent = client.send(output)\n    except Exception as error:\n        print(error)\n    return 0.5\n",
    ],
)
@ON_BUBBLEWRAP
async def test_of_several_evaluators_one_that_does_without_something_counts(service: Service, body: str) -> None:
    code = "import openai\nclient = openai.OpenAI()\n" + EXACT_BESIDE + JUDGED + body
    found = await service.evaluate(Evaluator(code), Row({"correct_answer": "4"}, "4"))
    assert (found.score, found.metrics) == (0.75, {"exact": 1.0, "judged": 0.5})
