"""Thirty judges as people write them, with the client libraries that people use. The provider answers `4 of 5` to each
judge.
"""

PYTHON = {
    "chat": """
from openai import OpenAI
client = OpenAI()
def evaluate(inputs, outputs, trace):
    r = client.chat.completions.create(model="gpt-4o", temperature=0, messages=[
        {"role": "system", "content": "You are a fair judge."},
        {"role": "user", "content": f"Rate the answer from 1 to 5.\\n{outputs}"}])
    return int("4" in r.choices[0].message.content)
""",
    "json mode": """
import json
from openai import OpenAI
def evaluate(inputs, outputs, trace):
    r = OpenAI().chat.completions.create(model="gpt-4o-mini", response_format={"type": "json_object"},
        messages=[{"role": "user", "content": f"Answer as JSON with a score.\\n{outputs}"}])
    return json.loads(r.choices[0].message.content)["score"] / 4
""",
    "parse": """
from openai import OpenAI
from pydantic import BaseModel
class Verdict(BaseModel):
    reason: str
    score: int
def evaluate(inputs, outputs, trace):
    r = OpenAI().beta.chat.completions.parse(model="gpt-4o", response_format=Verdict, messages=[{"role": "user", "content": outputs}])
    verdict = r.choices[0].message.parsed
    return {"score": verdict.score / 4, "reason": verdict.reason}
""",
    "parse of chat": '''
from openai import OpenAI
from pydantic import BaseModel, Field
class Grade(BaseModel):
    """How good the answer is."""
    explanation: str = Field(description="why")
    passed: bool
def evaluate(inputs, outputs, trace):
    r = OpenAI(max_retries=3, timeout=20).chat.completions.parse(model="gpt-4.1", response_format=Grade, messages=[{"role": "user", "content": outputs}])
    return r.choices[0].message.parsed.passed
''',
    "tool call": """
import json
from openai import OpenAI
TOOL = {"type": "function", "function": {"name": "grade", "parameters": {"type": "object", "properties": {"question": {"type": "string"}}}}}
def evaluate(inputs, outputs, trace):
    r = OpenAI().chat.completions.create(model="gpt-4o", tools=[TOOL], tool_choice={"type": "function", "function": {"name": "grade"}},
        messages=[{"role": "user", "content": outputs}])
    call = r.choices[0].message.tool_calls[0]
    return float(call.function.name == "grade" and "4" in json.loads(call.function.arguments)["question"])
""",
    "tokens": """
from openai import OpenAI
def evaluate(inputs, outputs, trace):
    r = OpenAI().chat.completions.create(model="gpt-4o", max_tokens=5, messages=[{"role": "user", "content": outputs}])
    return r.usage.total_tokens == r.usage.prompt_tokens + r.usage.completion_tokens > 0
""",
    "stream": """
from openai import OpenAI
def evaluate(inputs, outputs, trace):
    text = ""
    for chunk in OpenAI().chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": outputs}], stream=True):
        text += chunk.choices[0].delta.content or ""
    return float("4" in text)
""",
    "stream with usage": """
from openai import OpenAI
def evaluate(inputs, outputs, trace):
    last = None
    for last in OpenAI().chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": outputs}], stream=True,
            stream_options={"include_usage": True}):
        pass
    return last.usage.completion_tokens > 0
""",
    "async": """
from openai import AsyncOpenAI
client = AsyncOpenAI()
async def evaluate(inputs, outputs, trace):
    r = await client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": outputs}])
    return float("4" in r.choices[0].message.content)
""",
    "gather": """
import asyncio
from openai import AsyncOpenAI
async def ask(client, outputs, criterion):
    r = await client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": f"{criterion}?\\n{outputs}"}])
    return float("4" in r.choices[0].message.content)
async def evaluate(inputs, outputs, trace):
    async with AsyncOpenAI() as client:
        found = await asyncio.gather(*(ask(client, outputs, one) for one in ("correct", "clear", "kind")))
    return {"score": sum(found) / len(found), "metrics": dict(zip(("correct", "clear", "kind"), found))}
""",
    "asyncio.run": """
import asyncio
from openai import AsyncOpenAI
def evaluate(inputs, outputs, trace):
    async def main():
        r = await AsyncOpenAI().chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": outputs}])
        return r.choices[0].message.content
    return float("4" in asyncio.run(main()))
""",
    "threads": """
from concurrent.futures import ThreadPoolExecutor
from openai import OpenAI
client = OpenAI()
def ask(prompt):
    return client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": prompt}]).choices[0].message.content
def evaluate(inputs, outputs, trace):
    with ThreadPoolExecutor(3) as pool:
        votes = list(pool.map(ask, [f"vote {n}\\n{outputs}" for n in range(3)]))
    return sum("4" in vote for vote in votes) / 3
""",
    "tenacity": """
from openai import OpenAI, APIStatusError
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_exponential
client = OpenAI(max_retries=0)
@retry(stop=stop_after_attempt(4), wait=wait_exponential(multiplier=0.01), retry=retry_if_exception_type(APIStatusError))
def ask(prompt):
    return client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": prompt}])
def evaluate(inputs, outputs, trace):
    return float("4" in ask(outputs).choices[0].message.content)
""",
    "own key": """
import os
import openai
def evaluate(inputs, outputs, trace):
    client = openai.OpenAI(api_key=os.environ["OPENAI_API_KEY"], base_url=os.getenv("OPENAI_BASE_URL"))
    return float("4" in client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": outputs}]).choices[0].message.content)
""",
    "module client": """
import openai
def evaluate(inputs, outputs, trace):
    return "4" in openai.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": outputs}]).choices[0].message.content
""",
    "responses": """
from openai import OpenAI
def evaluate(inputs, outputs, trace):
    r = OpenAI().responses.create(model="gpt-4.1", instructions="Judge.", input=[{"role": "user", "content": outputs}])
    return float("4" in r.output_text)
""",
    "embeddings": """
import math
from openai import OpenAI
def evaluate(inputs, outputs, trace):
    one, two = (d.embedding for d in OpenAI().embeddings.create(model="text-embedding-3-small", input=[outputs, "it is 4 of 5"]).data)
    return sum(a * b for a, b in zip(one, two)) / math.dist(one, [0] * len(one)) / math.dist(two, [0] * len(two))
""",
    "azure": """
from openai import AzureOpenAI
def evaluate(inputs, outputs, trace):
    client = AzureOpenAI(api_version="2024-10-21")
    return float("4" in client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": outputs}]).choices[0].message.content)
""",
    "anthropic": """
import anthropic
client = anthropic.Anthropic()
def evaluate(inputs, outputs, trace):
    m = client.messages.create(model="claude-sonnet-4-5", max_tokens=64, system="Judge.", messages=[{"role": "user", "content": outputs}])
    return float("4" in m.content[0].text)
""",
    "anthropic tool": """
import anthropic
def evaluate(inputs, outputs, trace):
    m = anthropic.Anthropic().messages.create(model="claude-sonnet-4-5", max_tokens=64, tool_choice={"type": "tool", "name": "grade"},
        tools=[{"name": "grade", "input_schema": {"type": "object", "properties": {"score": {"type": "number"}}}}],
        messages=[{"role": "user", "content": outputs}])
    return next(block.input["score"] for block in m.content if block.type == "tool_use")
""",
    "anthropic async": """
from anthropic import AsyncAnthropic
async def evaluate(inputs, outputs, trace):
    async with AsyncAnthropic().messages.stream(model="claude-haiku-4-5", max_tokens=64, messages=[{"role": "user", "content": outputs}]) as stream:
        text = "".join([part async for part in stream.text_stream])
    return float("4" in text)
""",
    "litellm": """
import litellm
def evaluate(inputs, outputs, trace):
    a = litellm.completion(model="gpt-4o", messages=[{"role": "user", "content": outputs}])
    b = litellm.completion(model="anthropic/claude-sonnet-4-5", max_tokens=64, messages=[{"role": "user", "content": outputs}])
    return ("4" in a.choices[0].message.content) * ("4" in b["choices"][0]["message"]["content"])
""",
    "langchain": """
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI
chain = ChatPromptTemplate.from_messages([("system", "Judge."), ("user", "{answer}")]) | ChatOpenAI(model="gpt-4o", temperature=0)
def evaluate(inputs, outputs, trace):
    return float("4" in chain.invoke({"answer": outputs}).content)
""",
    "langchain structured": """
from langchain_openai import ChatOpenAI
from pydantic import BaseModel
class Grade(BaseModel):
    score: int
    reason: str
def evaluate(inputs, outputs, trace):
    grade = ChatOpenAI(model="gpt-4o").with_structured_output(Grade).invoke(outputs)
    return {"score": grade.score / 4, "reason": grade.reason}
""",
    "instructor": """
import instructor
from openai import OpenAI
from pydantic import BaseModel
class Grade(BaseModel):
    question: str
def evaluate(inputs, outputs, trace):
    grade = instructor.from_openai(OpenAI()).chat.completions.create(model="gpt-4o", response_model=Grade, max_retries=2,
        messages=[{"role": "user", "content": outputs}])
    return float("4" in grade.question)
""",
    "requests": """
import os
import requests
def evaluate(inputs, outputs, trace):
    r = requests.post(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", timeout=30,
        headers={"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
        json={"model": "gpt-4o", "messages": [{"role": "user", "content": outputs}]})
    r.raise_for_status()
    return float("4" in r.json()["choices"][0]["message"]["content"])
""",
    "httpx": """
import os
import httpx
async def evaluate(inputs, outputs, trace):
    async with httpx.AsyncClient(base_url=os.environ["ANTHROPIC_BASE_URL"]) as client:
        r = await client.post("/v1/messages", headers={"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01"},
            json={"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": outputs}]})
    return float("4" in r.json()["content"][0]["text"])
""",
}
NODE = {
    "openai": """
import OpenAI from 'openai';
const client = new OpenAI();
export async function evaluate(inputs, outputs, trace) {
  const r = await client.chat.completions.create({model: 'gpt-4o', response_format: {type: 'json_object'}, messages: [{role: 'user', content: outputs}]});
  return JSON.parse(r.choices[0].message.content).score / 4;
}
""",
    "openai in parallel": """
import OpenAI from 'openai';
export async function evaluate(inputs, outputs, trace) {
  const client = new OpenAI({maxRetries: 2, timeout: 20000});
  const ask = async (criterion) => (await client.chat.completions.create({model: 'gpt-4o', messages: [{role: 'user', content: `${criterion}?\\n${outputs}`}]})).choices[0].message.content;
  const said = await Promise.all(['correct', 'clear'].map(ask));
  return said.filter((text) => text.includes('4')).length / 2;
}
""",
    "fetch": """
export async function evaluate(inputs, outputs, trace) {
  const r = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
    method: 'POST',
    headers: {'Content-Type': 'application/json', Authorization: `Bearer ${process.env.OPENAI_API_KEY}`},
    body: JSON.stringify({model: 'gpt-4o', messages: [{role: 'user', content: outputs}]}),
  });
  if (!r.ok) throw new Error(await r.text());
  return (await r.json()).choices[0].message.content.includes('4') ? 1 : 0;
}
""",
}
