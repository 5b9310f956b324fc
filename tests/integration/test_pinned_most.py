"""Installs each package that evaluators often pin from the real index, and uses it once; also tests data files that
packages need.
"""

import base64
import hashlib
from collections.abc import AsyncIterator

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import DEFAULT_WORKSPACE
from evaluator_host.types.errors import HostError
from evaluator_host.types.evaluator import Evaluator, Limits, Row
from tests.conftest import ON_BUBBLEWRAP

pytestmark = ON_BUBBLEWRAP

USED = {  # for each pin: an import, and an expression that must be true
    "anthropic==0.52.0": ("import anthropic", "anthropic.__version__ == '0.52.0'"),
    "autoevals==0.0.129": ("from autoevals import Levenshtein", "Levenshtein()('a', 'a').score == 1"),
    "beautifulsoup4==4.13.4": (
        "from bs4 import BeautifulSoup",
        "BeautifulSoup('<p>hi</p>', 'html.parser').p.text == 'hi'",
    ),
    "better-profanity==0.7.0": ("from better_profanity import profanity", "not profanity.contains_profanity('hello')"),
    "contractions==0.1.73": ("import contractions", "contractions.fix(\"can't\") == 'cannot'"),
    "deepeval==3.0.0": (
        "from deepeval.test_case import LLMTestCase",
        "LLMTestCase(input='a', actual_output='b').input == 'a'",
    ),
    "editdistance==0.8.1": ("import editdistance", "editdistance.eval('a', 'b') == 1"),
    "ftfy==6.3.1": ("import ftfy", "ftfy.fix_text('a') == 'a'"),
    "jellyfish==1.2.0": ("import jellyfish", "jellyfish.jaro_similarity('a', 'a') == 1"),
    "jinja2==3.1.6": ("import jinja2", "jinja2.Template('{{ 1 }}').render() == '1'"),
    "jiwer==3.1.0": ("import jiwer", "jiwer.wer('a b', 'a b') == 0"),
    "json-repair==0.44.1": ("import json_repair", "json_repair.loads('{a: 1') == {'a': 1}"),
    "jsonschema==4.23.0": ("import jsonschema", "jsonschema.Draft202012Validator({'type': 'string'}).is_valid('a')"),
    "levenshtein==0.27.1": ("import Levenshtein", "Levenshtein.distance('a', 'b') == 1"),
    "lingua-language-detector==2.1.0": (
        "from lingua import Language, LanguageDetectorBuilder",
        "LanguageDetectorBuilder.from_languages(Language.ENGLISH, Language.FRENCH).build().detect_language_of('hello there friend') == Language.ENGLISH",
    ),
    "lxml==5.4.0": ("from lxml import etree", "etree.fromstring('<a/>').tag == 'a'"),
    "math-verify==0.7.0": ("from math_verify import parse, verify", "verify(parse('$1/2$'), parse('$0.5$'))"),
    "networkx==3.4.2": ("import networkx as nx", "nx.path_graph(3).number_of_edges() == 2"),
    "nltk==3.9.1": (
        "from nltk.translate.bleu_score import sentence_bleu",
        "sentence_bleu([['a', 'b', 'c', 'd']], ['a', 'b', 'c', 'd']) == 1",
    ),
    "numpy==2.1.3": ("import numpy as np", "np.array([1, 2]).sum() == 3"),
    "openai==1.82.0": ("import openai", "openai.__version__ == '1.82.0'"),
    "orjson==3.10.18": ("import orjson", "orjson.loads(b'[1]') == [1]"),
    "pandas==2.2.3": ("import pandas as pd", "pd.DataFrame({'a': [1, 2]})['a'].sum() == 3"),
    "pillow==11.2.1": ("from PIL import Image", "Image.new('L', (2, 2)).size == (2, 2)"),
    "pydantic==2.10.6": ("import pydantic", "pydantic.TypeAdapter(int).validate_python('3') == 3"),
    "python-dateutil==2.9.0.post0": ("from dateutil import parser", "parser.parse('2024-01-02').day == 2"),
    "python-levenshtein==0.27.1": ("import Levenshtein", "Levenshtein.ratio('a', 'a') == 1"),
    "pyyaml==6.0.2": ("import yaml", "yaml.safe_load('a: 1') == {'a': 1}"),
    "ragas==0.2.15 langchain-community==0.3.24": (
        "from ragas.metrics import ExactMatch",
        "ExactMatch().name == 'exact_match'",
    ),
    "rapidfuzz==3.13.0": ("from rapidfuzz import fuzz", "fuzz.ratio('a', 'a') == 100"),
    "regex==2024.11.6": ("import regex", "regex.fullmatch('a', 'a') is not None"),
    "rouge-score==0.0.4": (
        "from rouge_score import rouge_scorer",
        "rouge_scorer.RougeScorer(['rouge1']).score('a b', 'a b')['rouge1'].fmeasure == 1",
    ),
    "rouge==1.0.1": ("from rouge import Rouge", "Rouge().get_scores('a b', 'a b')[0]['rouge-1']['f'] > 0.99"),
    "sacrebleu==2.5.1": ("import sacrebleu", "round(sacrebleu.sentence_bleu('a b c d', ['a b c d']).score) == 100"),
    "scikit-learn==1.5.2": ("from sklearn.metrics import f1_score", "f1_score([1, 0], [1, 0]) == 1"),
    "scipy==1.14.1": ("from scipy import stats", "stats.spearmanr([1, 2, 3], [2, 4, 6]).statistic == 1"),
    "spacy==3.8.7 click==8.1.8": ("import spacy", "len(spacy.blank('en')('Hello there.')) == 3"),
    "sqlglot==26.12.0": ("import sqlglot", "sqlglot.parse_one('select 1').sql() == 'SELECT 1'"),
    "sympy==1.13.3": ("import sympy", "sympy.simplify('x + x - 2*x') == 0"),
    "tabulate==0.9.0": ("import tabulate", "tabulate.tabulate([[1]]) != ''"),
    "textblob==0.19.0": ("from textblob import TextBlob", "TextBlob('good').sentiment.polarity > 0"),
    "textstat==0.7.7": ("import textstat", "textstat.flesch_reading_ease('The cat sat.') > 50"),
    "thefuzz==0.22.1": ("from thefuzz import fuzz", "fuzz.ratio('a', 'a') == 100"),
    "tiktoken==0.9.0": (
        "import tiktoken",
        "len(tiktoken.Encoding('x', pat_str='.', mergeable_ranks={b'a': 0}, special_tokens={}).encode('aa')) == 2",
    ),
    "tokenizers==0.21.1": (
        "from tokenizers import Tokenizer, models",
        "Tokenizer(models.WordLevel({'a': 0}, unk_token='a')).encode('a').ids == [0]",
    ),
    "unidecode==1.4.0": ("import unidecode", "unidecode.unidecode('é') == 'e'"),
    "vaderSentiment==3.3.2": (
        "from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer as S",
        "S().polarity_scores('good')['compound'] > 0",
    ),
    "arrow==1.3.0": ("import arrow", "arrow.get('2024-01-02').day == 2"),
    "attrs==25.3.0": ("import attrs", "attrs.make_class('A', ['x'])(1).x == 1"),
    "black==25.1.0": ("import black", "black.format_str('a=1', mode=black.Mode()) == 'a = 1\\n'"),
    "cryptography==45.0.3": ("from cryptography.fernet import Fernet", "len(Fernet.generate_key()) == 44"),
    "dateparser==1.2.1": ("import dateparser", "dateparser.parse('2 January 2024').day == 2"),
    "deepdiff==8.5.0": ("from deepdiff import DeepDiff", "DeepDiff({'a': 1}, {'a': 1}) == {}"),
    "duckdb==1.3.0": ("import duckdb", "duckdb.sql('select 1').fetchone() == (1,)"),
    "email-validator==2.2.0": (
        "from email_validator import validate_email",
        "validate_email('a@example.org', check_deliverability=False).domain == 'example.org'",
    ),
    "emoji==2.14.1": ("import emoji", "emoji.emoji_count('a') == 0"),
    "html2text==2025.4.15": ("import html2text", "html2text.html2text('<b>a</b>').strip() == '**a**'"),
    "httpx==0.28.1": ("import httpx", "httpx.URL('https://example.org/a').path == '/a'"),
    "inflect==7.5.0": ("import inflect", "inflect.engine().plural('cat') == 'cats'"),
    "jmespath==1.0.1": ("import jmespath", "jmespath.search('a.b', {'a': {'b': 1}}) == 1"),
    "jsonpath-ng==1.7.0": (
        "from jsonpath_ng import parse",
        "[one.value for one in parse('$.a').find({'a': 1})] == [1]",
    ),
    "langchain-core==0.3.61": ("from langchain_core.messages import HumanMessage", "HumanMessage('a').content == 'a'"),
    "libcst==1.8.0": ("import libcst", "libcst.parse_module('a = 1').code == 'a = 1'"),
    "markdown==3.8": ("import markdown", "markdown.markdown('*a*') == '<p><em>a</em></p>'"),
    "matplotlib==3.10.3": (
        "import matplotlib\nmatplotlib.use('Agg')\nfrom matplotlib import pyplot",
        "len(pyplot.plot([1, 2])) == 1",
    ),
    "more-itertools==10.7.0": ("import more_itertools", "list(more_itertools.chunked([1, 2], 1)) == [[1], [2]]"),
    "msgspec==0.19.0": ("import msgspec", "msgspec.json.decode(b'[1]') == [1]"),
    "openpyxl==3.1.5": ("import openpyxl", "len(openpyxl.Workbook().sheetnames) == 1"),
    "phonenumbers==9.0.5": ("import phonenumbers", "phonenumbers.parse('+41446681800').country_code == 41"),
    "pint==0.24.4": ("import pint", "pint.UnitRegistry()('1 km').to('m').magnitude == 1000"),
    "polars==1.30.0": ("import polars as pl", "pl.DataFrame({'a': [1, 2]})['a'].sum() == 3"),
    "pyflakes==3.3.2": (
        "from pyflakes import api, reporter\nimport io",
        "api.check('a = 1\\n', 'a', reporter.Reporter(io.StringIO(), io.StringIO())) == 0",
    ),
    "pygments==2.19.1": ("import pygments.lexers", "pygments.lexers.get_lexer_by_name('python').name == 'Python'"),
    "pyjwt==2.10.1": ("import jwt", "jwt.decode(jwt.encode({'a': 1}, 'k' * 32), 'k' * 32, ['HS256']) == {'a': 1}"),
    "pypdf==5.5.0": ("import pypdf", "len(pypdf.PdfWriter().pages) == 0"),
    "pyphen==0.17.2": ("import pyphen", "pyphen.Pyphen(lang='en').inserted('beautiful').count('-') > 0"),
    "pyspellchecker==0.8.2": (
        "from spellchecker import SpellChecker",
        "SpellChecker().correction('speling') == 'spelling'",
    ),
    "pytest==8.3.5": ("import pytest", "pytest.approx(0.3) == 0.1 + 0.2"),
    "python-docx==1.1.2": ("import docx", "len(docx.Document().paragraphs) == 0"),
    "pytz==2025.2": ("import pytz", "pytz.timezone('Europe/Paris').zone == 'Europe/Paris'"),
    "radon==6.0.1": ("from radon.complexity import cc_visit", "cc_visit('def f(): pass')[0].complexity == 1"),
    "requests==2.32.3": (
        "import requests",
        "requests.Request('GET', 'https://example.org').prepare().url == 'https://example.org/'",
    ),
    "sentencepiece==0.2.0": ("import sentencepiece", "sentencepiece.SentencePieceProcessor() is not None"),
    "seaborn==0.13.2": ("import seaborn", "len(seaborn.color_palette('deep', 3)) == 3"),
    "shapely==2.1.1": ("from shapely import Point", "Point(0, 0).distance(Point(3, 4)) == 5"),
    "sqlalchemy==2.0.41": (
        "import sqlalchemy",
        "sqlalchemy.create_engine('sqlite://').connect().scalar(sqlalchemy.text('select 1')) == 1",
    ),
    "sqlparse==0.5.3": ("import sqlparse", "sqlparse.format('select 1', keyword_case='upper') == 'SELECT 1'"),
    "strsimpy==0.2.1": ("from strsimpy.levenshtein import Levenshtein", "Levenshtein().distance('a', 'b') == 1"),
    "tenacity==9.1.2": ("import tenacity", "tenacity.Retrying(stop=tenacity.stop_after_attempt(1))(lambda: 1) == 1"),
    "textdistance==4.6.3": ("import textdistance", "textdistance.levenshtein('a', 'b') == 1"),
    "toolz==1.0.0": ("import toolz", "toolz.get_in(['a'], {'a': 1}) == 1"),
    "tqdm==4.67.1": ("from tqdm import tqdm", "list(tqdm([1], disable=True)) == [1]"),
    "transformers==4.52.3": ("from transformers import BertTokenizerFast", "BertTokenizerFast is not None"),
    "ujson==5.10.0": ("import ujson", "ujson.loads('[1]') == [1]"),
    "validators==0.35.0": ("import validators", "bool(validators.url('https://example.org'))"),
    "wordfreq==3.1.1": ("from wordfreq import zipf_frequency", "zipf_frequency('the', 'en') > 5"),
    "xmltodict==0.14.2": ("import xmltodict", "xmltodict.parse('<a>1</a>') == {'a': '1'}"),
}
NEEDS_MB = {"deepeval==3.0.0": 512, "ragas==0.2.15 langchain-community==0.3.24": 1024}
NOTED = {  # expected warnings for each pin: its import leaves threads or files behind, or tries to reach hosts
    "deepeval==3.0.0": {"threads_at_load", "unreachable"},
    "matplotlib==3.10.3": {"files_at_load"},
    "polars==1.30.0": {"threads_at_load"},
    "ragas==0.2.15 langchain-community==0.3.24": {"threads_at_load"},
    "seaborn==0.13.2": {"files_at_load"},
}
REFUSED = {  # for each pin: the remedy that the error names
    "langdetect==1.0.9": "Ask the operator to set allow_source_builds",
    "ragas==0.2.15": "pin another version of langchain-community too",
    "rouge-score==0.1.2": "Pin rouge-score==0.0.4",
    "spacy==3.8.7": "pin click==",
}


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("pins", USED)
async def test_a_package_is_installed_and_used_without_a_warning(service: Service, pins: str) -> None:
    imported, used = USED[pins]
    code = f"{imported}\ndef evaluate(inputs, outputs, trace):\n    return bool({used})\n"
    limits = Limits(timeout_s=60, memory_mb=NEEDS_MB.get(pins, 256))
    result = await service.evaluate(Evaluator(code, packages=tuple(pins.split()), limits=limits), Row())
    assert (result.score, result.error) == (1.0, None)
    assert {note.code for note in result.warnings} == NOTED.get(pins, set())


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("pin", REFUSED)
async def test_a_package_that_does_not_work_alone_is_refused_with_the_way_out(service: Service, pin: str) -> None:
    evaluator = Evaluator("def evaluate(inputs, outputs, trace):\n    return 1", packages=(pin,))
    with pytest.raises(HostError) as refused:
        await service.evaluate(evaluator, Row())
    assert REFUSED[pin] in refused.value.detail


async def _stored(service: Service, files: dict[str, bytes]) -> dict[str, str]:
    """Store files as data files, and return their digests by path."""

    async def once(content: bytes) -> AsyncIterator[bytes]:
        yield content

    sent = {path: await service.data.receive(DEFAULT_WORKSPACE, once(content)) for path, content in files.items()}
    return {path: one.digest for path, one in sent.items()}


PUNKT = "nltk_data/tokenizers/punkt_tab/english"
FOLDER = {f"{PUNKT}/{name}": b"" for name in ("collocations.tab", "sent_starters.txt", "ortho_context.tab")}


@pytest.mark.long
async def test_nltk_finds_its_data_among_the_data_files_of_an_evaluator(service: Service) -> None:
    code = "import nltk\ndef evaluate(inputs, outputs, trace):\n    return {'score': 1, 'said': nltk.sent_tokenize(outputs)}"
    data = await _stored(service, {**FOLDER, f"{PUNKT}/abbrev_types.txt": b"mr\n"})
    found = await service.evaluate(
        Evaluator(code, packages=("nltk==3.9.1",), data=data), Row(outputs="Hello Mr. Smith. Bye.")
    )
    assert found.value == {"score": 1, "said": ["Hello Mr. Smith.", "Bye."]}, found.error
    lacked = await service.evaluate(Evaluator(code, packages=("nltk==3.9.1",)), Row(outputs="Hi."))
    assert lacked.error is not None
    assert "send it in `data`" in (lacked.error.hint or "")


async def test_tiktoken_finds_an_encoding_among_the_data_files_of_an_evaluator(service: Service) -> None:
    url = "https://example.com/own.tiktoken"
    ranks = [*(bytes([byte]) for byte in range(256)), b"he"]
    text = "".join(f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(ranks))
    code = f"""
import tiktoken
from tiktoken.load import load_tiktoken_bpe
ranks = load_tiktoken_bpe("{url}")
own = tiktoken.Encoding("own", pat_str=".+", mergeable_ranks=ranks, special_tokens={{}})
def evaluate(inputs, outputs, trace):
    return {{"score": 1, "said": own.encode(outputs)}}
"""
    data = await _stored(service, {f"data-gym-cache/{hashlib.sha1(url.encode()).hexdigest()}": text.encode()})
    found = await service.evaluate(Evaluator(code, packages=("tiktoken==0.9.0",), data=data), Row(outputs="hehe"))
    assert found.value == {"score": 1, "said": [256, 256]}, found.error


# for each pin: code that writes the folder `model`, and an expression that must be true when the folder is read
MODELS = {
    "spacy==3.8.7 click==8.1.8": (
        "import spacy\nspacy.blank('en').to_disk('model')",
        "len(__import__('spacy').load('model')('Hello there.')) == 3",
    ),
    "tokenizers==0.21.1": (
        "import os, tokenizers\nos.mkdir('model')\ntokenizers.Tokenizer(tokenizers.models.WordLevel({'a': 7}, unk_token='a')).save('model/tokenizer.json')",
        "__import__('tokenizers').Tokenizer.from_file('model/tokenizer.json').encode('a').ids == [7]",
    ),
}
READ = """
    import base64, os
    paths = [f"{above}/{name}" for above, _, names in os.walk("model") for name in names]
    return {"score": 1, "files": {path: base64.b64encode(open(path, "rb").read()).decode() for path in paths}}
"""


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("pins", MODELS)
async def test_a_model_is_read_from_the_data_files_of_an_evaluator(service: Service, pins: str) -> None:
    written, read = MODELS[pins]
    lines = written.replace("\n", "\n    ")
    packages = tuple(pins.split())
    made = await service.evaluate(
        Evaluator(f"def evaluate(i, o, t):\n    {lines}{READ}", packages=packages, limits=Limits(timeout_s=60)), Row()
    )
    assert isinstance(made.value, dict), made.error
    data = await _stored(service, {path: base64.b64decode(one) for path, one in made.value["files"].items()})
    used = f"def evaluate(i, o, t):\n    return bool({read})"
    result = await service.evaluate(Evaluator(used, packages=packages, data=data, limits=Limits(timeout_s=60)), Row())
    assert result.score == 1, result.error
