"""Packages that evaluators use are installed from the real indexes, and do real work on each backend."""

import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, Language, Row
from tests.real_sets import BINARY, NUMBERS, PLAIN, TEXTS

PYTHON, JAVASCRIPT, TYPESCRIPT = Language.PYTHON, Language.JAVASCRIPT, Language.TYPESCRIPT


@dataclass(frozen=True)
class Case:
    """An evaluator that returns `score` only if its packages work."""

    packages: tuple[str, ...]
    code: str
    score: float
    language: Language = JAVASCRIPT
    row: dict[str, Any] = field(default_factory=lambda: {"inputs": {}, "outputs": "abc"})


CASES = {
    "numpy, pandas and scipy": Case(
        NUMBERS,
        """
import numpy as np, pandas as pd
from scipy import stats

def evaluate(inputs, outputs, trace):
    table = pd.DataFrame({"said": np.array([1.0, 2.0, 3.0]), "right": [2.0, 4.0, 6.0]})
    return {"score": table["said"].sum(), "r": stats.spearmanr(table["said"], table["right"]).statistic}
""",
        6.0,
        PYTHON,
    ),
    "scikit-learn": Case(
        NUMBERS,
        """
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.metrics.pairwise import cosine_similarity

def evaluate(inputs, outputs, trace):
    vectors = TfidfVectorizer().fit_transform(["the same words", "the same words"])
    return {"score": f1_score([1, 0, 1], [1, 0, 0], average="micro") * 3, "alike": cosine_similarity(vectors)[0, 1]}
""",
        2.0,
        PYTHON,
    ),
    "jsonschema": Case(
        TEXTS,
        """
from jsonschema import Draft202012Validator

def evaluate(inputs, outputs, trace):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a", "b"]}
    return len(list(Draft202012Validator(schema).iter_errors({"a": "1"})))
""",
        2,
        PYTHON,
    ),
    "rapidfuzz": Case(
        TEXTS,
        "from rapidfuzz import fuzz\ndef evaluate(inputs, outputs, trace):\n    return fuzz.ratio(outputs, 'abd!') * 7\n",
        400.0,
        PYTHON,
    ),
    "pydantic": Case(
        TEXTS,
        """
from pydantic import BaseModel, ValidationError

class Answer(BaseModel):
    count: int
    name: str

def evaluate(inputs, outputs, trace):
    try:
        Answer.model_validate_json('{"count": "many"}')
    except ValidationError as error:
        return error.error_count() + Answer(count="40", name=outputs).count
""",
        42,
        PYTHON,
    ),
    "nltk": Case(
        TEXTS,
        """
from nltk.metrics import edit_distance
from nltk.stem import PorterStemmer

def evaluate(inputs, outputs, trace):
    return edit_distance(PorterStemmer().stem("running"), "rain") * 21
""",
        42,
        PYTHON,
    ),
    "lodash, as a pasted example imports it": Case(
        PLAIN,
        """import * as _ from "lodash"

async function main(variables: {
  completion: string,
  target: string,
}): Promise<{ score: number }> {
  return {
    score: variables.target.length + _.floor(7.55),
  }
}
""",
        10,
        TYPESCRIPT,
        {"variables": {"completion": "", "target": "abc"}},
    ),
    "lodash, its default import and a sub-path": Case(
        PLAIN,
        """import _ from "lodash";
import { sumBy } from "lodash";
import fp from "lodash/fp";
export const evaluate = (inputs: object, outputs: string, trace: unknown): number =>
  _(["a", "b"]).map((x: string) => x.length).sum() + sumBy([{ n: 3 }], "n") + fp.max([1, 4])!;
""",
        9,
        TYPESCRIPT,
    ),
    "ajv": Case(
        PLAIN,
        """import Ajv from "ajv";
const validate = new Ajv({ allErrors: true }).compile({
  type: "object", properties: { a: { type: "integer" } }, required: ["a", "b", "c"],
});
export const evaluate = (inputs, outputs, trace) => { validate({ a: "1" }); return validate.errors.length; };
""",
        3,
    ),
    "zod": Case(
        PLAIN,
        """import { z } from "zod";
const Answer = z.object({ score: z.number().min(0), tags: z.array(z.string()) });
export function evaluate(inputs: unknown, outputs: unknown, trace: unknown) {
  const parsed = Answer.safeParse({ score: -1, tags: [1, "two"] });
  return parsed.success ? 0 : parsed.error.issues.length;
}
""",
        2,
        TYPESCRIPT,
    ),
    "date-fns": Case(
        PLAIN,
        """import { differenceInCalendarDays, parseISO } from "date-fns";
export const evaluate = (i, o, t) => differenceInCalendarDays(parseISO("2024-03-01"), parseISO("2024-02-01"));
""",
        29,
    ),
    "a scoped package": Case(
        PLAIN,
        """import { sha256 } from "@noble/hashes/sha256";
import { bytesToHex } from "@noble/hashes/utils";
export const evaluate = (inputs, outputs, trace) => parseInt(bytesToHex(sha256(outputs)).slice(0, 8), 16);
""",
        0xBA7816BF,
    ),
    "an ESM-only package": Case(
        PLAIN,
        """import { customAlphabet, nanoid } from "nanoid";
export const evaluate = (inputs, outputs, trace) => nanoid().length + Number(customAlphabet("7", 2)());
""",
        98,
    ),
    "a package with a native addon": Case(
        BINARY,
        'import { crc32 } from "@node-rs/crc32"; export const evaluate = (inputs, outputs, trace) => crc32(outputs);',
        0x352441C2,
    ),
    "a native addon that a row changed": Case(
        BINARY,
        """import { crc32 } from "@node-rs/crc32";
export const evaluate = (inputs, outputs, trace) => {
  crc32.calls = (crc32.calls ?? 0) + 1;
  return crc32.calls;
};
""",
        1,
    ),
    "addons in folders of their package": Case(
        BINARY,
        """const { unmask } = require("bufferutil");
exports.evaluate = (inputs, outputs, trace) => {
  const bytes = Buffer.from(outputs);
  unmask(bytes, Buffer.from([1, 1, 1, 1]));
  return bytes[0] + (String(unmask).includes("native code") ? 1000 : 0);
};
""",
        1096,
    ),
    "WebAssembly in a package's text": Case(
        BINARY,
        """import { crc32 } from "hash-wasm";
export const evaluate = async (inputs, outputs, trace) => parseInt(await crc32(outputs), 16);
""",
        0x352441C2,
    ),
    "WebAssembly in a package's file": Case(
        BINARY,
        """import { Tiktoken } from "@dqbd/tiktoken/lite";
import ranks from "@dqbd/tiktoken/encoders/r50k_base.json";
export function evaluate(inputs, outputs, trace) {
  const encoding = new Tiktoken(ranks.bpe_ranks, ranks.special_tokens, ranks.pat_str);
  try {
    return encoding.encode("hello world").length;
  } finally {
    encoding.free();
  }
}
""",
        2,
    ),
}


# a case with native code: in a container, files arrive in another way and the kernel allows other calls
NUMPY = Case(
    ("numpy==2.1.0",),
    "import numpy as np\ndef evaluate(inputs, outputs, trace):\n    return float((np.ones((99, 99)) @ np.ones((99, 99))).max())\n",
    99.0,
    PYTHON,
)
IN_CONTAINERS = ("pydantic", "a package with a native addon", "addons in folders of their package")
ON_BACKENDS = {
    **{f"{name}-bubblewrap": ("bubblewrap", case) for name, case in CASES.items()},
    **{f"{name}-docker": ("docker", CASES[name]) for name in IN_CONTAINERS},
    "numpy-docker": ("docker", NUMPY),
}


@pytest.mark.long("this installs large packages; test_environments.py and test_docker_packages.py install small ones")
@pytest.mark.timeout(400)  # long enough for the first case with a set, which installs the set
@pytest.mark.parametrize(("service", "case"), ON_BACKENDS.values(), ids=ON_BACKENDS, indirect=["service"])
async def test_a_real_set_does_real_work(service: Service, case: Case) -> None:
    evaluator = Evaluator(code=case.code, language=case.language, packages=case.packages)
    for _ in range(2):  # twice, because each row must find the package in its initial state
        result = await service.evaluate(evaluator, Row(**case.row))
        assert result.error is None, result.error
        assert result.score == case.score
    assert {package.name for package in result.environment.packages if package.requested} == {
        re.split("==|(?<=.)@", pin)[0] for pin in case.packages
    }
