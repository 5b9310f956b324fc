"""What a file's text is besides its program (byte order mark, line ends, what was pasted along), kept or taken off."""

import difflib
from dataclasses import dataclass

from evaluator_host.model.evaluator import Language
from evaluator_host.service.source import clean

_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class SourceText:
    """A program, and how it is written to a file.

    Attributes:
      program: With plain line feeds, without what a web page put around it; as many lines as the file.
      notes: What was taken off for good.
    """

    program: str
    notes: tuple[str, ...] = ()
    bom: bool = False
    crlf: bool = False

    def restored(self, program: str) -> str:
        """Return a program as the file has it."""
        if self.crlf:
            program = program.replace("\n", "\r\n")
        return _BOM + program if self.bom else program


def read_text(code: str, language: Language) -> SourceText:
    """Return what is in a file or was pasted."""
    bom = code.startswith(_BOM)
    body = code.removeprefix(_BOM)
    crlf = "\r\n" in body
    plain = body.replace("\r\n", "\n").replace("\r", "\n")
    cleaned = clean(plain, language)
    program = plain
    notes = tuple(note.message for note in cleaned.notes)
    if notes or _differs(plain, cleaned.code):
        program = cleaned.code
    return SourceText(program, notes, bom, crlf)


def _differs(plain: str, cleaned: str) -> bool:
    """Whether cleaning did more than to blank a shebang, which is a comment to every parser here."""
    first, _, rest = plain.partition("\n")
    return cleaned not in (plain, "\n" + rest if first.startswith("#!") else plain)


def unified_diff(old: str, new: str, name: str) -> str:
    """Return what changed, as `diff -u` would."""
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
