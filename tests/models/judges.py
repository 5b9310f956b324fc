"""Judges as people write them, with real client libraries or none: each scores 1.0 if the model gave the expected answer."""

from evaluator_host.types.evaluator import Evaluator, Language, Limits

PACKAGES = (
    "anthropic==2.12.0",
    "instructor==1.17.0",
    "langchain-openai==1.7.3",
    "litellm==1.83.0",
    "openai==3.3.0",
)
NODE_PACKAGES = ("openai@7.57.0",)
_LIMITS = Limits(timeout_s=30, memory_mb=768, processes=64)

ASK = """
import json, os, urllib.error, urllib.request

def ask(model, text, path="/chat/completions", **more):
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": text}], **more}).encode()
    asked = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + path, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(asked) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
"""
"""A function that asks a granted model without a client library, and returns status and body."""
ONE = (
    ASK
    + """
def evaluate(inputs, outputs, trace):
    status, body = ask("judge", outputs)
    return {"score": float(status == 200), "reason": json.dumps(body)}
"""
)
"""A judge that asks once."""
OPENAI = """
from openai import OpenAI

client = OpenAI()

def evaluate(inputs, outputs, trace):
    asked, right = [{"role": "user", "content": outputs}], "answer to " + outputs
    answer = client.chat.completions.create(model="judge", messages=asked).choices[0].message.content
    stream = client.chat.completions.create(model="judge", stream=True, messages=asked)
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in stream).strip()
    response = client.responses.create(model="judge", input=outputs).output_text
    one, two = client.embeddings.create(model="judge", input=[outputs, "other"], encoding_format="float").data
    said = {"chat": answer, "stream": streamed, "responses": response}
    wrong = [name for name, text in said.items() if text != right]
    alike = sum(a * b for a, b in zip(one.embedding, two.embedding)) / 1.25
    return {"score": 0.0 if wrong else alike, "reason": f"wrong: {wrong}"}
"""
OPENAI_ASYNC = """
import asyncio
from openai import AsyncOpenAI

async def evaluate(inputs, outputs, trace):
    client = AsyncOpenAI()
    asked = [client.chat.completions.create(model="judge", messages=[{"role": "user", "content": f"{outputs} {n}"}])
             for n in range(3)]
    said = [one.choices[0].message.content for one in await asyncio.gather(*asked)]
    return float(said == [f"answer to {outputs} {n}" for n in range(3)])
"""
ANTHROPIC = """
import anthropic

def evaluate(inputs, outputs, trace):
    client = anthropic.Anthropic()
    said = client.messages.create(model="claude", max_tokens=20, messages=[{"role": "user", "content": outputs}])
    with client.messages.stream(model="claude", max_tokens=20, messages=[{"role": "user", "content": outputs}]) as more:
        text = more.get_final_text()
    return float(said.content[0].text == text == "answer to " + outputs)
"""
PYTHON = {
    "openai": OPENAI,
    "openai-async": OPENAI_ASYNC,
    "anthropic": ANTHROPIC,
}


EVERY = f"""
import asyncio, inspect

JUDGES = {{}}
for name, code in {PYTHON!r}.items():
    scope = {{"__name__": name}}
    exec(code, scope)
    JUDGES[name] = scope["evaluate"]

def evaluate(inputs, outputs, trace):
    found = {{name: judge(inputs, outputs, trace) for name, judge in JUDGES.items()}}
    found = {{name: asyncio.run(score) if inspect.isawaitable(score) else score for name, score in found.items()}}
    return {{"score": min(one["score"] if isinstance(one, dict) else one for one in found.values()), "reason": str(found)}}
"""
"""Code with all judges of `PYTHON` in one program."""


def python_judge(name: str) -> Evaluator:
    """Return the judge with this name in `PYTHON`, or all judges for the name `every`; it is granted both models."""
    return Evaluator(
        EVERY if name == "every" else PYTHON[name], packages=PACKAGES, limits=_LIMITS, models=("judge", "claude")
    )


NODE = {
    "fetch": """
async function ask(place, content) {
  const answer = await fetch(place + '/chat/completions', {
    method: 'POST', headers: {'Content-Type': 'application/json'},
    body: JSON.stringify({model: 'judge', messages: [{role: 'user', content}]}),
  });
  return (await answer.json()).choices[0].message.content;
}
export async function evaluate(inputs, outputs, trace) {
  const said = [await ask(process.env.OPENAI_BASE_URL, outputs), await ask(process.env.GROQ_BASE_URL + '/openai/v1', outputs)];
  return said.every((one) => one === 'answer to ' + outputs) ? 1 : 0;
}
""",
    "openai": """
import OpenAI from 'openai';

const client = new OpenAI();

export async function evaluate(inputs: any, outputs: string, trace: any) {
  const messages: any[] = [{role: 'user', content: outputs}];
  const said = await client.chat.completions.create({model: 'judge', messages});
  let text = '';
  for await (const chunk of await client.chat.completions.create({model: 'judge', messages, stream: true})) {
    text += chunk.choices[0].delta.content ?? '';
  }
  const vectors = await client.embeddings.create({model: 'judge', input: [outputs], encoding_format: 'float'});
  const right = 'answer to ' + outputs;
  return said.choices[0].message.content === right && text.trim() === right ? vectors.data[0].embedding[0] : 0;
}
""",
}


def node_judge(name: str) -> Evaluator:
    """Return the judge with this name in `NODE`; it is granted the model `judge`."""
    packages = NODE_PACKAGES if name == "openai" else ()
    return Evaluator(NODE[name], language=Language.TYPESCRIPT, packages=packages, limits=_LIMITS, models=("judge",))
