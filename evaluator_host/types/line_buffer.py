"""Splits bytes that arrive in pieces into lines.

However small the pieces are, the time is linear in the number of bytes.
"""


class LineBuffer:
    """The bytes that have arrived since the last newline."""

    def __init__(self) -> None:
        self.rest = bytearray()

    def feed(self, piece: bytes) -> list[bytes]:
        """Add a piece, and return the lines that are complete now, without their newlines."""
        self.rest += piece
        if b"\n" not in piece:
            return []
        *lines, rest = bytes(self.rest).split(b"\n")
        self.rest = bytearray(rest)
        return lines
