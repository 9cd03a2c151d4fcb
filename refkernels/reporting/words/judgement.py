"""The words of a judgement, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from refkernels.reporting.words.catalogues import by_language
from refkernels.reporting.words.forms import form_name

VERDICT_WORDS = by_language("judgement", prefix="verdict:")
REASONS = by_language("judgement", prefix="reason:")
WORDS = by_language("judgement")


def reason(fault: Mapping[str, Any], lang: str) -> str:
    """A fault, one of a judgement's reasons, as a clause."""
    words, details = WORDS[lang], dict(fault["details"])
    if "way" in details:
        details["way"] = words(str(details["way"]), format=details["format"])
    if "over_bound" in details:
        details["over_bound"] = f"{float(details['over_bound']):.3g}"
    if "form" in details:
        details["form"] = form_name(str(details["form"]), lang)
    return REASONS[lang][str(fault["kind"])].format(**details)
