"""Makes foreign text (a kernel's message, a name in a file) fit for a record and a page."""

from __future__ import annotations

import re

# Control characters, lone surrogates, and the marks that change the direction of writing.
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def showable(text: str) -> str:
    """The text with each character that cannot be shown replaced by U+FFFD; tabs and line feeds
    stay."""
    return _UNSHOWABLE.sub("\ufffd", text)
