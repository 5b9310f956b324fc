"""One package set contains many npm packages that evaluators pin: each works in a sandbox as it does outside."""

from typing import Final

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, Language, Limits, Row
from tests.conftest import ON_BUBBLEWRAP

pytestmark = [
    pytest.mark.long("this installs a hundred packages; test_npm_bundles.py has a case of each kind"),
    ON_BUBBLEWRAP,
]
# for each set and pin: imports, and an expression that must be true
SETS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "texts": {
        "lodash-es@4.18.1": ("import { chunk } from 'lodash-es'", "chunk([1, 2, 3], 2).length === 2"),
        "ramda@0.32.0": ("import * as R from 'ramda'", "R.sum([1, 2]) === 3"),
        "date-fns@4.4.0": ("import { addDays } from 'date-fns'", "addDays(new Date(2024, 0, 1), 1).getDate() === 2"),
        "dayjs@1.11.23": ("import dayjs from 'dayjs'", "dayjs('2024-01-02').date() === 2"),
        "luxon@3.7.2": (
            "import { DateTime } from 'luxon'",
            "DateTime.fromISO('2024-01-02T00:00', { zone: 'Asia/Tokyo' }).offset === 540",
        ),
        "moment@2.31.0": ("import moment from 'moment'", "moment('2024-01-02').date() === 2"),
        "uuid@14.0.3": ("import { v4, validate } from 'uuid'", "validate(v4())"),
        "nanoid@6.0.2": ("import { nanoid } from 'nanoid'", "nanoid().length === 21"),
        "diff@9.0.0": ("import { diffWords } from 'diff'", "diffWords('a b', 'a c').length === 3"),
        "fastest-levenshtein@1.0.16": (
            "import { distance } from 'fastest-levenshtein'",
            "distance('abc', 'abd') === 1",
        ),
        "leven@4.1.0": ("import leven from 'leven'", "leven('abc', 'abd') === 1"),
        "string-similarity@4.0.4": (
            "import similarity from 'string-similarity'",
            "similarity.compareTwoStrings('ab', 'ab') === 1",
        ),
        "fuse.js@7.5.0": (
            "import Fuse from 'fuse.js'",
            "new Fuse(['apple', 'pear']).search('appel')[0].item === 'apple'",
        ),
        "stopword@3.1.5": (
            "import { removeStopwords } from 'stopword'",
            "removeStopwords(['the', 'cat'])[0] === 'cat'",
        ),
        "franc@6.2.0": (
            "import { franc } from 'franc'",
            "franc('This is certainly a sentence of the English language') === 'eng'",
        ),
        "wink-nlp-utils@2.1.0": ("import utils from 'wink-nlp-utils'", "utils.string.tokenize0('a cat').length === 2"),
        "stemmer@2.0.1": ("import { stemmer } from 'stemmer'", "stemmer('running') === 'run'"),
        "pluralize@8.0.0": ("import pluralize from 'pluralize'", "pluralize('cat') === 'cats'"),
        "slugify@1.6.9": ("import slugify from 'slugify'", "slugify('a b') === 'a-b'"),
        "change-case@5.4.4": ("import { camelCase } from 'change-case'", "camelCase('a b') === 'aB'"),
        "validator@13.15.35": ("import validator from 'validator'", "validator.isEmail('a@example.org')"),
        "he@2.0.0": ("import * as he from 'he'", "he.decode('&amp;') === '&'"),
        "gpt-tokenizer@4.0.0": ("import { encode } from 'gpt-tokenizer'", "encode('hello world').length === 2"),
        "tiktoken@1.0.22": (
            "import { get_encoding } from 'tiktoken'",
            "get_encoding('cl100k_base').encode('hello world').length === 2",
        ),
        "semver@7.8.6": ("import semver from 'semver'", "semver.gt('2.0.0', '1.0.0')"),
        "chalk@6.0.1": ("import chalk from 'chalk'", "chalk.level >= 0"),
    },
    "formats": {
        "yaml@2.9.1": ("import { parse } from 'yaml'", "parse('a: 1').a === 1"),
        "js-yaml@5.5.0": ("import * as yaml from 'js-yaml'", "yaml.load('a: 1').a === 1"),
        "json5@2.2.3": ("import JSON5 from 'json5'", "JSON5.parse('{a: 1,}').a === 1"),
        "jsonrepair@3.15.0": ("import { jsonrepair } from 'jsonrepair'", "jsonrepair('{a: 1') === '{\"a\": 1}'"),
        "csv-parse@7.0.3": ("import { parse } from 'csv-parse/sync'", "parse('a,b\\n1,2')[1][1] === '2'"),
        "papaparse@5.7.1": ("import Papa from 'papaparse'", "Papa.parse('a,b\\n1,2').data[1][1] === '2'"),
        "marked@18.2.1": ("import { marked } from 'marked'", "marked.parse('*a*') === '<p><em>a</em></p>\\n'"),
        "markdown-it@15.0.3": (
            "import markdown from 'markdown-it'",
            "markdown().render('*a*') === '<p><em>a</em></p>\\n'",
        ),
        "unified@11.0.5": (
            "import { unified } from 'unified'\nimport parse from 'remark-parse'",
            "unified().use(parse).parse('# a').children[0].type === 'heading'",
        ),
        "remark-parse@11.0.0": (
            "import { unified } from 'unified'\nimport parse from 'remark-parse'",
            "unified().use(parse).parse('a').children.length === 1",
        ),
        "remark@15.0.1": ("import { remark } from 'remark'", "String(await remark().process('*a*')) === '*a*\\n'"),
        "rehype@13.0.2": (
            "import { rehype } from 'rehype'",
            "String(await rehype().process('<p>a')).includes('<p>a</p>')",
        ),
        "turndown@7.2.5": ("import Turndown from 'turndown'", "new Turndown().turndown('<b>a</b>') === '**a**'"),
        "htmlparser2@12.0.0": (
            "import { parseDocument } from 'htmlparser2'",
            "parseDocument('<p>a</p>').children[0].name === 'p'",
        ),
        "parse5@8.1.1": (
            "import { parseFragment } from 'parse5'",
            "parseFragment('<p>a').childNodes[0].tagName === 'p'",
        ),
        "linkedom@0.18.15": (
            "import { parseHTML } from 'linkedom'",
            "parseHTML('<p>hi</p>').document.querySelector('p').textContent === 'hi'",
        ),
        "node-html-parser@9.0.7": (
            "import { parse } from 'node-html-parser'",
            "parse('<p>hi</p>').querySelector('p').text === 'hi'",
        ),
        "fast-xml-parser@5.12.1": (
            "import { XMLParser } from 'fast-xml-parser'",
            "new XMLParser().parse('<a>1</a>').a === 1",
        ),
        "xml2js@0.6.2": (
            "import { parseStringPromise } from 'xml2js'",
            "(await parseStringPromise('<a>1</a>')).a === '1'",
        ),
        "sanitize-html@2.18.1": (
            "import sanitize from 'sanitize-html'",
            "sanitize('<script>x</script><b>a</b>') === '<b>a</b>'",
        ),
        "handlebars@4.7.10": ("import Handlebars from 'handlebars'", "Handlebars.compile('{{a}}')({ a: 1 }) === '1'"),
        "mustache@4.2.0": ("import Mustache from 'mustache'", "Mustache.render('{{a}}', { a: 1 }) === '1'"),
        "nunjucks@3.2.4": ("import nunjucks from 'nunjucks'", "nunjucks.renderString('{{ a }}', { a: 1 }) === '1'"),
        "ejs@7.0.2": ("import ejs from 'ejs'", "ejs.render('<%= a %>', { a: 1 }) === '1'"),
        "jsonpath-plus@11.3.0": (
            "import { JSONPath } from 'jsonpath-plus'",
            "JSONPath({ path: '$.a', json: { a: 1 } })[0] === 1",
        ),
        "jmespath@0.16.0": ("import jmespath from 'jmespath'", "jmespath.search({ a: { b: 1 } }, 'a.b') === 1"),
    },
    "checks": {
        "ajv@8.20.0": (
            "import Ajv from 'ajv'\nimport formats from 'ajv-formats'",
            "formats(new Ajv()).validate({ type: 'string', format: 'email' }, 'a@example.org')",
        ),
        "ajv-formats@3.0.1": (
            "import Ajv from 'ajv'\nimport formats from 'ajv-formats'",
            "!formats(new Ajv()).validate({ type: 'string', format: 'date' }, 'a')",
        ),
        "joi@18.3.2": ("import Joi from 'joi'", "Joi.string().validate('a').error === undefined"),
        "yup@1.7.1": ("import * as yup from 'yup'", "yup.number().isValidSync(1)"),
        "valibot@1.5.0": ("import * as v from 'valibot'", "v.is(v.string(), 'a')"),
        "superstruct@2.0.2": ("import { is, string } from 'superstruct'", "is('a', string())"),
        "decimal.js@10.6.0": (
            "import Decimal from 'decimal.js'",
            "new Decimal('0.1').plus('0.2').toString() === '0.3'",
        ),
        "big.js@7.0.1": ("import Big from 'big.js'", "new Big('0.1').plus('0.2').toString() === '0.3'"),
        "bignumber.js@11.1.5": (
            "import BigNumber from 'bignumber.js'",
            "new BigNumber('0.1').plus('0.2').toString() === '0.3'",
        ),
        "fraction.js@5.3.4": (
            "import Fraction from 'fraction.js'",
            "new Fraction('1/3').add('1/6').toFraction() === '1/2'",
        ),
        "simple-statistics@7.12.1": ("import { mean } from 'simple-statistics'", "mean([1, 3]) === 2"),
        "ml-distance@5.0.0": ("import { similarity } from 'ml-distance'", "similarity.cosine([1, 0], [1, 0]) === 1"),
        "chai@6.3.0": ("import { expect } from 'chai'", "expect(1).to.equal(1) !== null"),
        "expect@30.5.2": ("import { expect } from 'expect'", "expect({ a: 1 }).toEqual({ a: 1 }) === undefined"),
        "@vitest/expect@5.1.1": ("import { equals } from '@vitest/expect'", "equals({ a: 1 }, { a: 1 })"),
        "jest-diff@30.5.2": ("import { diff } from 'jest-diff'", "diff(1, 2).includes('- Expected')"),
        "fast-check@4.11.0": (
            "import fc from 'fast-check'",
            "fc.assert(fc.property(fc.integer(), (n) => n === n)) === undefined",
        ),
        "fast-deep-equal@3.1.3": ("import equal from 'fast-deep-equal'", "equal({ a: 1 }, { a: 1 })"),
        "deep-equal@2.2.3": ("import equal from 'deep-equal'", "equal({ a: 1 }, { a: 1 })"),
        "microdiff@1.6.0": ("import diff from 'microdiff'", "diff({ a: 1 }, { a: 2 })[0].type === 'CHANGE'"),
        "p-limit@7.3.3": ("import limit from 'p-limit'", "(await limit(1)(() => 1)) === 1"),
        "p-retry@9.0.0": ("import retry from 'p-retry'", "(await retry(() => 1)) === 1"),
        "async@3.2.6": ("import { map } from 'async'", "(await map([1], async (n) => n + 1))[0] === 2"),
        "rxjs@7.8.2": ("import { of, lastValueFrom } from 'rxjs'", "(await lastValueFrom(of(1))) === 1"),
        "immer@11.2.10": ("import { produce } from 'immer'", "produce({ a: 1 }, (draft) => { draft.a = 2 }).a === 2"),
        "graphology@0.26.0": ("import { Graph } from 'graphology'", "new Graph().addNode('a') === 'a'"),
    },
    "code": {
        "acorn@8.19.0": (
            "import { parse } from 'acorn'",
            "parse('let a = 1', { ecmaVersion: 2022 }).body.length === 1",
        ),
        "@babel/parser@8.1.3": (
            "import { parse } from '@babel/parser'",
            "parse('let a = 1').program.body.length === 1",
        ),
        "espree@11.2.0": (
            "import * as espree from 'espree'",
            "espree.parse('let a = 1', { ecmaVersion: 2022 }).body.length === 1",
        ),
        "esprima@4.0.1": ("import esprima from 'esprima'", "esprima.parseScript('let a = 1').body.length === 1"),
        "meriyah@7.4.2": ("import { parseScript } from 'meriyah'", "parseScript('let a = 1').body.length === 1"),
        "eslint@10.15.0": (
            "import { Linter } from 'eslint'",
            "new Linter().verify('var a = 1', [{ rules: { 'no-var': 2 } }]).length === 1",
        ),
        "sucrase@3.35.1": (
            "import { transform } from 'sucrase'",
            "transform('const a: number = 1', { transforms: ['typescript'] }).code.includes('a = 1')",
        ),
        "terser@5.51.4": ("import { minify } from 'terser'", "(await minify('let a = 1 + 1')).code === 'let a=2;'"),
        "node-sql-parser@5.4.0": (
            "import sql from 'node-sql-parser'",
            "new sql.Parser().astify('select 1').type === 'select'",
        ),
        "sql-formatter@15.9.0": ("import { format } from 'sql-formatter'", "format('select 1').startsWith('select')"),
        "css-tree@3.2.1": ("import { parse } from 'css-tree'", "parse('a { color: red }').type === 'StyleSheet'"),
        "postcss@8.5.33": ("import postcss from 'postcss'", "postcss.parse('a { color: red }').nodes.length === 1"),
        "quickjs-emscripten@0.32.0": (
            "import { getQuickJS } from 'quickjs-emscripten'",
            "(await getQuickJS()).evalCode('1 + 1') === 2",
        ),
        "sql.js@1.16.0": (
            "import initSqlJs from 'sql.js'",
            "new (await initSqlJs()).Database().exec('select 1')[0].values[0][0] === 1",
        ),
    },
    "clients": {
        "@anthropic-ai/sdk@1.14.0": (
            "import Anthropic from '@anthropic-ai/sdk'",
            "new Anthropic({ apiKey: 'key' }).apiKey === 'key'",
        ),
        "@google/genai@3.3.0": (
            "import { GoogleGenAI } from '@google/genai'",
            "new GoogleGenAI({ apiKey: 'key' }).vertexai === false",
        ),
        "autoevals@0.3.0": (
            "import { Levenshtein } from 'autoevals'",
            "(await Levenshtein({ output: 'a', expected: 'a' })).score === 1",
        ),
        "langsmith@0.12.0": ("import { Client } from 'langsmith'", "new Client({ apiKey: 'key' }) !== null"),
        "@langchain/core@1.4.0": (
            "import { HumanMessage } from '@langchain/core/messages'",
            "new HumanMessage('a').content === 'a'",
        ),
        "@modelcontextprotocol/sdk@1.32.2": (
            "import { TextContentSchema } from '@modelcontextprotocol/sdk/types.js'",
            "TextContentSchema.parse({ type: 'text', text: 'a' }).text === 'a'",
        ),
        "axios@1.21.1": (
            "import axios from 'axios'",
            "axios.getUri({ url: 'https://a.org', params: { b: 1 } }) === 'https://a.org?b=1'",
        ),
        "groq-sdk@1.6.0": ("import Groq from 'groq-sdk'", "new Groq({ apiKey: 'key' }).apiKey === 'key'"),
    },
}
MEMORY_MB: Final = {"gpt-tokenizer@4.0.0": 512, "node-sql-parser@5.4.0": 1024}


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("name", "pin"), [(name, pin) for name, used in SETS.items() for pin in used])
async def test_a_package_of_a_large_set_is_used_as_on_a_desk(service: Service, name: str, pin: str) -> None:
    imported, true = SETS[name][pin]
    code = f"{imported};\nexport const evaluate = async (inputs, outputs, trace) => Boolean({true});"
    limits = Limits(timeout_s=60, memory_mb=MEMORY_MB.get(pin, 256))
    evaluator = Evaluator(code, Language.JAVASCRIPT, packages=tuple(SETS[name]), limits=limits)
    result = await service.evaluate(evaluator, Row())
    assert (result.score, result.error) == (1.0, None), (result.error, result.logs.stderr)
