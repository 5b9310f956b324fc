"""Parses pip pins with the `packaging` library: PEP 503 names, PEP 508 extras and PEP 440 versions."""

import re
from contextlib import suppress
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidName, canonicalize_name, canonicalize_version
from packaging.version import InvalidVersion, Version

from evaluator_host.engine.packages.lock import Pin, Refusal

_URL: Final = re.compile(
    r"://|^\s*(git|hg|svn|bzr|github|gitlab|bitbucket|gist|npm|file|https?|data)[+:]|\bfile:", re.IGNORECASE
)
_PATH: Final = re.compile(r"^[./~\\]|^[A-Za-z]:\\|\.(whl|zip|tar|gz|tgz|bz2|egg|txt|toml)$", re.IGNORECASE)
_NPM_PIN: Final = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)\s*@[\sv=^~]*(?P<version>\d[\w.+!-]*)")
_SINGLE_EQUALS: Final = re.compile(r"(?P<name>[^=<>!~\s]+)\s*=\s*(?P<version>\d[^=<>!~\s]*)")
_LOOSE: Final = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(?:\s*+(?P<extras>\[[\w\s,.-]*\]))?(?:[@=^~\s].*)?")
_LATEST: Final = "`latest` is not a version, and can mean another version tomorrow; write name==1.2.3"

_FIRST_YEAR: Final = 1990  # a version may be a date if its first number is at least this year


def read(text: str) -> Pin | Refusal:
    """Return a string's exact pin in canonical form, or the reason why it is not a pin."""
    if refusal := _foreign(text):
        return refusal
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return _unreadable(text)
    if requirement.marker is not None or ";" in text:
        return Refusal("environment markers are not allowed", _hint(requirement))
    if requirement.url is not None:
        if requirement.url == "latest":
            return Refusal(_LATEST)
        return Refusal("a URL or path is not allowed; pin a version from the package index")
    return _exact(requirement)


def wanted(text: str) -> Requirement | None:
    """Return the package and version range in a refused string, for a search; None if the string has none."""
    if _foreign(text, npm_too=False):
        return None
    found = _loosely(text)
    if found is None:
        return None
    if found.url == "latest":
        found.url = None
    found.marker = None
    if any(spec.operator == "===" for spec in found.specifier):
        return None
    return None if found.url else found


def _loosely(text: str) -> Requirement | None:
    """Read a requirement. If it is not valid, read `a=1` as `a==1`, or only the package; return None for other text."""
    with suppress(InvalidRequirement):
        return Requirement(text)
    loose = _LOOSE.fullmatch(text)
    if single := _SINGLE_EQUALS.fullmatch(text):
        with suppress(InvalidRequirement):
            return Requirement(f"{single['name']}=={single['version']}")
    try:
        return None if loose is None else Requirement(canonicalize_name(loose["name"]) + (loose["extras"] or ""))
    except InvalidRequirement:  # the corrected string is not valid either, as for `a- =1` or `a[,]=1`
        return None


def canonical_version(version: Version) -> str:
    """Return one spelling for equal PEP 440 versions: 2.1.0 for 2.1 and 2.1.0.0.

    Versions that are dates, such as 2024.1, stay unchanged.
    """
    shortest = canonicalize_version(str(version))
    release = ".".join(str(part) for part in Version(shortest).release)
    missing = 0 if version.release[0] >= _FIRST_YEAR else 2 - release.count(".")
    epoch = f"{version.epoch}!" if version.epoch else ""
    suffix = shortest.removeprefix(epoch).removeprefix(release)
    return epoch + release + ".0" * max(0, missing) + suffix


def _foreign(text: str, *, npm_too: bool = True) -> Refusal | None:
    if text.startswith("-"):
        return Refusal("an option of pip is not a package")
    if "#" in text:
        return Refusal("comments and hashes are not allowed", _clean(text.split("#", maxsplit=1)[0]))
    if _URL.search(text):
        return Refusal("a URL is not allowed; pin a version from the package index")
    if _PATH.search(text):
        return Refusal("a path or file is not allowed; pin a version from the package index")
    if npm_too and (npm := _NPM_PIN.fullmatch(text)):
        return Refusal(
            "this is npm's syntax; a Python evaluator pins packages with ==", _clean(f"{npm['name']}=={npm['version']}")
        )
    if text.startswith("@"):
        return Refusal("this is an npm package; a Python evaluator pins packages of the Python index")
    return None


def _clean(text: str) -> str | None:
    pin = read(text.strip())
    return pin.text if isinstance(pin, Pin) else None


def _unreadable(text: str) -> Refusal:
    if ";" in text:
        return Refusal("environment markers are not allowed", _clean(text.split(";", maxsplit=1)[0]))
    if single := _SINGLE_EQUALS.fullmatch(text):
        return Refusal("a pin has two equals signs", _clean(f"{single['name']}=={single['version']}"))
    if "latest" in text.lower():
        return Refusal(_LATEST)
    if "^" in text or "~" in text:
        return Refusal("this is a version range in npm's syntax; a Python evaluator pins one version with ==")
    return Refusal("is not a pin; write name==1.2.3")


def _exact(requirement: Requirement) -> Pin | Refusal:
    specifiers = list(requirement.specifier)
    if not specifiers:
        return Refusal("has no version; write name==1.2.3")
    if len(specifiers) > 1 or specifiers[0].operator != "==":
        what = "`===` compares versions as text" if specifiers[0].operator == "===" else "a range"
        return Refusal(f"{what}; a pin must name one version with ==", _hint(requirement))
    if specifiers[0].version.endswith(".*"):
        return Refusal("`.*` is a range; a pin must name one version")
    try:
        version = Version(specifiers[0].version)
    except InvalidVersion:
        return Refusal(f"{specifiers[0].version} is not a version")
    try:
        name = canonicalize_name(requirement.name, validate=True)
        extras = tuple(sorted({canonicalize_name(extra, validate=True) for extra in requirement.extras}))
    except InvalidName:
        return Refusal("a name must begin and end with a letter or a digit")
    return Pin(name, canonical_version(version), extras)


def _hint(requirement: Requirement) -> str | None:
    """Return a pin of the only version that a range names, if the range includes this version: 2.1.0 for `>=2.1.0`."""
    named = [spec.version for spec in requirement.specifier if spec.operator in {"==", "===", ">=", "~=", "<="}]
    if len(named) != 1 or not re.fullmatch(r"[\w.!+-]+", named[0]):
        return None
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    candidate = f"{requirement.name}{extras}=={named[0]}"
    return _clean(candidate) if requirement.specifier.contains(named[0], prereleases=True) else None
