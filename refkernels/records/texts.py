"""Text from elsewhere (a kernel's message, a name in a file) that a record can hold."""

from __future__ import annotations

import re

# Control characters, half characters, and the marks that turn the direction of writing around.
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def showable(text: str) -> str:
    """The text with a replacement character for each that cannot be shown; tabs and line feeds
    stay."""
    return _UNSHOWABLE.sub("\ufffd", text)
