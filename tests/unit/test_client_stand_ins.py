"""While code loads, it can create a client from a package that is not pinned, but using the client gives an error that
names the pin.
"""

import json
import subprocess
import sys

from evaluator_host.engine.config.settings import RUNTIMES_DIR

PROGRAM = """
import json, os
from evaluator_runner import client_keys, imports, later

client_keys.give_keys(["from openai import OpenAI"], os.environ)
reads = 'OpenAI(api_key=os.environ["MINE_API_KEY"])'
client_keys.give_keys([reads, 'OpenAI(api_key=os.environ["OTHER_KEY"]) if os.getenv("OTHER_KEY") else None'], os.environ)
caught = 'try: client = Judge(api_key=os.environ["CAUGHT_KEY"])\\nexcept KeyError: client = None'
client_keys.give_keys([caught, 'Judge(api_key=os.environ["A=B_KEY"])'], os.environ)
code = '''import litellm
from groq import Groq
from groq.types.chat import ChatCompletion
try:
    import cohere
except ImportError:
    cohere = None
'''
later.install(code, {})
exec(compile(code, "evaluator.py", "exec"))

client = Groq(api_key=os.environ["OPENAI_API_KEY"])
given = [name for name in ("MINE_API_KEY", "OTHER_KEY", "CAUGHT_KEY", "A=B_KEY") if name in os.environ]
client.timeout = 3
table = client.models["a"] | None
found = {"key": os.environ["OPENAI_API_KEY"], "missing": imports.missing_imports("import groq, litellm, json", "e")}
errors = []
def fails(call):
    try:
        call()
    except ImportError as error:
        errors.append(str(error))
fails(lambda: list(client.models))
fails(lambda: bool(client))
fails(lambda: client == 1)
exec("class A(ChatCompletion): pass", derived := {"ChatCompletion": ChatCompletion})
later.loaded()
fails(lambda: exec("class B(ChatCompletion): pass", {"ChatCompletion": ChatCompletion}))
fails(derived["A"])
fails(lambda: client.chat.completions.create())
fails(lambda: litellm.completion)
fails(lambda: __import__("anthropic"))
print(json.dumps({**found, "given": given, "errors": errors, "caught": cohere}))
"""


def test_a_client_can_be_made_but_not_used() -> None:
    ran = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(RUNTIMES_DIR / 'python')!r})\n{PROGRAM}"],
        env={"PATH": "/usr/bin"},
        check=True,
        capture_output=True,
        text=True,
    )
    found = json.loads(ran.stdout)
    assert found["key"] == "no-key-in-a-sandbox"
    assert found["given"] == ["MINE_API_KEY"]
    assert found["caught"] is None
    missing = {one["module"] for one in found["missing"]}
    assert missing == {"groq", "litellm"}
    assert [one.partition(";")[0] for one in found["errors"]] == [
        "`groq.Groq().models` needs the package groq, which is not pinned",
        "`groq.Groq()` needs the package groq, which is not pinned",
        "`groq.Groq()` needs the package groq, which is not pinned",
        "`groq.types.chat.ChatCompletion` needs the package groq, which is not pinned",
        "`groq.types.chat.ChatCompletion` needs the package groq, which is not pinned",
        "`groq.Groq()` needs the package groq, which is not pinned",
        "`litellm.completion` needs the package litellm, which is not pinned",
        "No module named 'anthropic'",
    ]
