"""The cell magic works in a real IPython shell."""

import re
from collections.abc import Iterator

import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.testing.globalipapp import start_ipython

from tests.conftest import DATA_DIR
from tests.docs.blocks import ROOT

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALUATOR_HOST_DATA_DIR", str(DATA_DIR))
        patch.setenv("EVALUATOR_HOST_SANDBOX", "bubblewrap")
        shell = start_ipython() or InteractiveShell.instance()
        yield shell


def cell(shell: InteractiveShell, code: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    shell.run_cell(code)
    printed = capsys.readouterr()
    return printed.out + printed.err


def test_the_cells_of_its_page(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "integrations.md").read_text()
    for code in re.findall(r"```text\n(%.*?)```", text, re.DOTALL):
        printed = cell(shell, code, capsys)
    assert "mean 0.5 over 2 of 2 rows, 0 failed" in printed
    assert shell.user_ns["exact_scores"].mean == 0.5
    assert shell.user_ns["exact"].code.startswith("def evaluate")
    assert "<td>0</td>" in shell.user_ns["exact_scores"]._repr_html_()


def test_a_data_frame_and_javascript(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.user_ns["frame"] = pd.DataFrame({"answer": ["a", "bc"]})
    code = "function evaluate(inputs, outputs, trace) { return outputs.length }"
    printed = cell(shell, f"%%evaluator length --rows frame --map outputs=answer --language javascript\n{code}", capsys)
    assert "mean 1.5 over 2 of 2 rows" in printed
    assert "NaN" not in printed
    shell.user_ns["frame"] = pd.DataFrame({"answer": ["a", "bc"], "price": [1.5, None]})
    printed = cell(shell, f"%%evaluator length --rows frame --map outputs=answer --language javascript\n{code}", capsys)
    assert "frame has NaN or infinities, for example at $[1].price" in printed


def test_doubtful_scores_and_rows_that_are_not_shown(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.user_ns["many"] = [{"inputs": {"known": 1}, "outputs": "a"}] * 21
    code = "def evaluate(inputs, outputs, trace):\n    return inputs['unknown'] == outputs"
    printed = cell(shell, f"%%evaluator broken --rows many\n{code}", capsys)
    assert "no score over 0 of 21 rows, 21 failed\ndoubtful: " in printed
    assert "1 more row" in printed
    shown = shell.user_ns["broken_scores"]._repr_html_()
    assert "<p>doubtful: " in shown
    assert "1 more row" in shown


def test_mistakes_are_reported_without_a_traceback(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    good = "def evaluate(inputs, outputs, trace):\n    return 1"
    assert "exact loads: evaluate(inputs, outputs, trace)" in cell(shell, f"%%evaluator exact\n{good}", capsys)
    assert "line 1: " in cell(shell, "%%evaluator exact\ndef evaluate(inputs, outputs, trace: return", capsys)
    for line, told in (
        ("exact --rows nothing", "there is no variable nothing"),
        ("exact --package numpy", "no version; write name==1.2.3"),
        ("", "usage: %%evaluator"),
        ("exact --url http://127.0.0.1:9", "nothing answers at"),
    ):
        printed = cell(shell, f"%%evaluator {line}\n{good}", capsys)
        assert told in printed, printed
        assert "Traceback" not in printed
