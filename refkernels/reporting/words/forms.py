"""The named forms of ops in words, and what is said of errors that another form avoids."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from refkernels.records.codec import number
from refkernels.reporting.words.catalogues import by_language, read_catalogue
from refkernels.reporting.words.numerals import figure

FORMS: Mapping[str, Mapping[str, str]] = read_catalogue("forms")
"""By form: a phrase in each language. A form of a function is a formula, which needs none."""
_NARROW = ("float16", "bfloat16")
_WORDS = by_language("avoidable")


def form_name(forms: str, lang: str = "en") -> str:
    """“kept” (the normalised x rounded ...); several names are separated by "; "."""
    return "; ".join(_named(form, "form", lang) for form in forms.split("; "))


def _named(form: str, key: str, lang: str, **details: str) -> str:
    return (
        _WORDS[lang](key, form=form, words=FORMS[form][lang], **details) if form in FORMS else form
    )


def avoidable(measured: Mapping[str, Any], format: str, lang: str = "en") -> str | None:
    """The clause on a measurement's avoidable errors; None where there are none."""
    better, counts = (measured.get("bound") or {}).get("better"), measured["counts"]
    if not better:
        return None
    ratio = number(better["ratio"]) or 0.0
    return _WORDS[lang]["avoidable_exactly" if math.isinf(ratio) else "avoidable"].format(
        count=f"{counts['avoidable']:,}",
        elements=f"{counts['elements']:,}",
        ratio=figure(ratio),
        form=better_form(better["form"], format, lang),
    )


def better_form(form: str, format: str, lang: str = "en") -> str:
    """The form that avoids the errors; in 16 bits it must also keep its steps wide."""
    return _named(form, "wide" if format in _NARROW else "form", lang, format=format)


def avoiding_advice(better: Mapping[str, Any], format: str, lang: str) -> str:
    """What to do about avoidable errors."""
    return _WORDS[lang]("todo", form=better_form(better["form"], format, lang))
