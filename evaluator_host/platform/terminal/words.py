"""Rewrites messages for the terminal: fields of the API, such as `limits.timeout_s`, become options (`--timeout-s`)."""

import re
from typing import Final

_LIMITS: Final = "timeout_s|memory_mb|processes|disk_mb|log_kb|result_kb"
_SETTINGS: Final = "entry|config|repair|correct_answer_key|score_output|integers"
_WORDS: Final = (
    (r"add (\S+) to `packages`", r"add --package \1"),
    (r"(?:in|to) `packages`", "with --package"),
    (r"evaluator\.packages\[\d+\]|packages\[\d+\]|`packages`", "--package"),
    (rf"`settings\.({_SETTINGS})`|\b(?:evaluator\.)?(?:settings\.({_SETTINGS})|limits\.({_LIMITS}))\b", None),
    (r"set `(language|contract)`(?: to)?", r"add --\1"),
    (r"set `python` to (3\.\d+)", r"add --python \1"),
    (r"in `models`", "with --model"),
    (r'as "models": \["([^"]+)"\]', r"with --model '\1'"),
    (r"\(`network`\)", "(--network)"),
    (r"\(`\?replace=true`\)", "(--replace)"),
    (r"; in your project's folder, `evaluator-host run FILE` sends [^;]*", ""),
    (r"in `files`, by its path: \{\"([^\"]+)\": \"…\"\}", r"with --file: \1"),
    (r"in `files`, by their paths: \{[^}]*\}", "with --files FOLDER, the folder of your project"),
    (r", in `files`: \{[^}]*\}, by its path from this file", ": put it beside the evaluator, or name it with --file"),
    (r", and say in `path` where the code is, such as [\w./]+", ""),
    (r"say in `path` where the code is[^,]*, or import", "import"),
    (r"send it in `files`, and say in `path` [^)]*\), or import", "name it with --file, and import"),
    (r"in `files`(?: \(texts\) or `data`)?|in `data`", "with --file"),
    (r"`format`", "--format"),
    (r"^mapping\.", "--map "),
    (
        r'map a column, "mapping": \{"outputs": "([^"]+)"\}, or write "none" in its place',
        r"add --map outputs=\1, or --map outputs=none",
    ),
    (r"\bwith force\b", "with --force"),
)
_READ: Final = tuple((re.compile(api), option) for api, option in _WORDS)


def in_options(text: str) -> str:
    """Replace API fields in a message or hint with the command-line options that set them."""
    for api, option in _READ:
        text = api.sub(_option if option is None else option, text)
    return text


def _option(found: "re.Match[str]") -> str:
    return "--" + next(name for name in found.groups() if name).replace("_", "-")
