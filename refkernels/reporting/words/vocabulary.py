"""The words of the report: verdicts, flags, statuses and properties, each in plain language
(`vocabulary.json`).

A word in a record that is not listed here (a third party's verdict, a new flag) is shown unchanged,
and ranks where it will be noticed.
"""

from __future__ import annotations

from dataclasses import dataclass

from refkernels.records.words import DIRECTIONS, DTYPES, LEVELS
from refkernels.reporting.words.catalogues import by_language


@dataclass(frozen=True)
class Verdict:
    """One verdict, or `unusual`: its words, and a glyph, because colour alone is not enough."""

    name: str
    glyph: str
    short: str
    style: str  # CSS class in HTML
    colour: str  # rich style in the terminal
    meaning: str

    @property
    def rank(self) -> float:
        """0 is worst; an unknown verdict comes after the bad ones."""
        return LEVELS.index(self.name) if self.name in LEVELS else _UNKNOWN


_UNKNOWN = LEVELS.index("exceeds_bound") + 0.5
_SHORT = by_language("vocabulary", prefix="verdict:")
_MEANINGS = by_language("vocabulary", prefix="meaning:")
_MARKS = {  # the glyph, the CSS class, and the style in the terminal
    "special_value_mismatch": ("≠", "vs", "bold magenta"),
    "invariant_violated": ("⊘", "vi", "bold red"),
    "exceeds_bound": ("✗", "vx", "bold yellow"),
    "range_limited": ("∞", "vl", "bold yellow"),
    "ill_conditioned": ("◇", "vd", "bold"),
    "uncertified": ("?", "vq", "bold"),
    "rounding": ("≈", "vr", "blue"),
    "correctly_rounded": ("✓", "vc", "cyan"),
    "unusual": ("△", "vu", "yellow"),
}
_KNOWN = {
    name: Verdict(name, glyph, _SHORT["en"][name], style, colour, _MEANINGS["en"][name])
    for name, (glyph, style, colour) in _MARKS.items()
}
UNUSUAL = _KNOWN["unusual"]
LEVEL_WORDS = tuple(_KNOWN[name] for name in LEVELS)
"""All of them, worst first."""

_FLAGS = {
    lang: {"unusual": _MEANINGS[lang]["unusual"], **flags}
    for lang, flags in by_language("vocabulary", prefix="flag:").items()
}
_STATUSES = by_language("vocabulary", prefix="status:")
_PROPERTIES = by_language("vocabulary", prefix="property:")
FLAGS, STATUSES, PROPERTIES = _FLAGS["en"], _STATUSES["en"], _PROPERTIES["en"]
WIDE = frozenset(["float32", "float64"])  # what people train and check in; shown first


def verdict(name: str) -> Verdict:
    """The verdict called `name`; an unknown one ranks just below `exceeds_bound`."""
    listed = _KNOWN.get(name)
    if listed is not None:
        return listed
    return Verdict(
        name, "?", name[:16], "vq", "bold",
        f"A verdict that this version of the report does not know: {name}.",
    )  # fmt: skip


def short_of(verdict: Verdict, lang: str) -> str:
    """The verdict in a word or two."""
    return _SHORT[lang].get(verdict.name, verdict.short)


def meaning_of(verdict: Verdict, lang: str) -> str:
    """The meaning of the verdict."""
    return _MEANINGS[lang].get(verdict.name, verdict.meaning)


def meaning_of_flag(name: str, lang: str = "en") -> str:
    """The meaning of the flag, or its own name in words."""
    return _FLAGS[lang].get(name, name.replace("_", " ") + ".")


def meaning_of_status(name: str, lang: str = "en") -> str:
    """The meaning of the status, or its own name in words."""
    return _STATUSES[lang].get(name, name.replace("_", " "))


def meaning_of_property(name: str, lang: str = "en") -> str:
    """What stays the same, or the property's own name in words."""
    return _PROPERTIES[lang].get(name, name.replace("_", " "))


def rank_of_status(name: str) -> int:
    """Errors first, `unsupported` (a fact, not a fault) last."""
    order = list(STATUSES)
    return order.index(name) if name in STATUSES else -1


def rank_of_dtype(name: str) -> tuple[int, str]:
    """float16, bfloat16, float32, float64, then others by name."""
    return (DTYPES.index(name) if name in DTYPES else len(DTYPES), name)


def rank_of_direction(name: str) -> tuple[int, str]:
    """forward, backward, then others by name."""
    return (DIRECTIONS.index(name) if name in DIRECTIONS else len(DIRECTIONS), name)
