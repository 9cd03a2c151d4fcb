"""How a caller's value is shown in an error message."""

from typing import Any


def shown(value: Any) -> str:
    """Its repr, if that is short and one line; else its type's name."""
    try:
        text = repr(value)
    except Exception:  # an integer of too many digits, or a failing repr of the caller's own
        text = ""
    return text if 0 < len(text) <= 60 and text.isprintable() else f"of type {type(value).__name__}"
