"""Models and orders of summation in Chinese (`models.json`): names, built from a few phrases, and
descriptions."""

from __future__ import annotations

import re

from refkernels.reporting.words.catalogues import read_catalogue

_CHINESE = read_catalogue("models")
_IN = re.compile(r"(.+) in ((?:b?float)\d+)")


def model_name(name: str, lang: str) -> str:
    """The name in a language; phrases that have no translation stay as they are."""
    if lang == "en":
        return name
    return "，".join(_phrase(part) for part in name.split(", "))


def statement(model: str, english: str, lang: str) -> str:
    """The sentence that describes a model; "" if the language has none."""
    return english if lang == "en" else str(_CHINESE["statements"].get(model, ""))


def _phrase(part: str) -> str:
    for pattern, phrase in _CHINESE["phrases"].items():
        match = re.fullmatch(pattern, part)
        if match:
            return match.expand(phrase)
    inside = _IN.fullmatch(part)
    return f"以 {inside[2]} {_phrase(inside[1])}" if inside else part
