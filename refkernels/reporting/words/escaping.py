"""Escapes foreign text (a framework's message, a name in a file) for a page or a terminal.

A page shows exactly what the text says: control characters have no effect, lone surrogates do not
break the file, and Markdown and HTML find neither markup nor addresses to turn into links. Links
come only from this package's own text.
"""

from __future__ import annotations

import re

from refkernels.records.texts import showable

_MARKS = re.compile(r"([\\`*_\[\]|#~])")
_ADDRESS = re.compile(r":(?=//)|(?<=\bwww)\.", re.IGNORECASE)


def clipped(text: str, length: int = 300) -> str:
    """One showable line of at most `length` characters."""
    line = showable(" ".join(text.split()))
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def escaped(text: str, length: int = 400) -> str:
    """One line in which Markdown and HTML see no markup and no address."""
    line = clipped(text, length).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _ADDRESS.sub(lambda address: "\\" + address[0], _MARKS.sub(r"\\\1", line))


def code(text: str, length: int = 400) -> str:
    """One line as Markdown code, which is shown verbatim."""
    line = clipped(text, length)
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    return f"{fence} {line} {fence}" if "`" in line else f"{fence}{line}{fence}"
