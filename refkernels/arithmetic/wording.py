"""How a caller's value is shown in an error message."""

from typing import Any


def shown(value: Any) -> str:
    """Its repr, if that is short and one line; else its type's name."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # too many digits, or too deep a list
        text = ""
    return text if 0 < len(text) <= 60 and text.isprintable() else f"of type {type(value).__name__}"
