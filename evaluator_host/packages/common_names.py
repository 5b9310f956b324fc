"""Names of well-known packages, to suggest the right one for a misspelt name."""

import difflib
from typing import Final

from evaluator_host.model.evaluator import Language

# Packages that evaluators import and whose names are easily misspelt; never a whole index.
_PYTHON: Final = tuple(
    """
aiohttp beautifulsoup4 bert-score boto3 datasets evaluate fuzzywuzzy httpx jellyfish jinja2 jiwer joblib jsonpath-ng
jsonschema langchain langdetect litellm lxml markdown matplotlib networkx nltk numpy openai opencv-python orjson
pandas pillow polars pyarrow pydantic python-dateutil python-levenshtein pytest pyyaml rapidfuzz ragas regex requests
rouge-score sacrebleu scikit-learn scipy sentence-transformers sentencepiece spacy sqlalchemy sqlglot statsmodels
sympy tabulate textblob textdistance textstat tiktoken tokenizers torch tqdm transformers unidecode
""".split()  # noqa: SIM905 a name a line would be a page of names
)
_NPM: Final = tuple(
    """
ajv ajv-formats axios big.js chalk cheerio compromise csv-parse date-fns dayjs decimal.js deep-equal diff
fast-deep-equal fast-levenshtein fastest-levenshtein fuse.js js-levenshtein js-yaml jsdom json5 jsonpath-plus langchain
leven lodash lodash-es luxon marked mathjs moment nanoid natural node-fetch openai papaparse ramda semver sharp
simple-statistics string-similarity tiktoken typescript underscore uuid validator xml2js yaml yup zod
""".split()  # noqa: SIM905 a name a line would be a page of names
)
_CLOSE: Final = 0.8  # one wrong, missing or swapped letter in a name of five


def close_name(name: str, language: Language) -> str | None:
    """Return the well-known name that a misspelt one is close to, or None."""
    known = _PYTHON if language is Language.PYTHON else _NPM
    if name in known:
        return None
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=_CLOSE)
    return close[0] if close else None
