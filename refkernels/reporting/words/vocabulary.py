"""The words of the report: verdicts, flags, statuses and properties, each in plain language
(`vocabulary.json`).

A word in a record that is not listed here (a third party's verdict, a new flag) is shown unchanged,
and ranks where it will be noticed.
"""

from __future__ import annotations

from dataclasses import dataclass

from refkernels.records.words import DIRECTIONS, DTYPES, FAULTS, LEVELS
from refkernels.reporting.words.catalogues import Texts, by_language


@dataclass(frozen=True)
class Verdict:
    """One verdict, or `unusual`: its words, and a glyph, because colour alone is not enough."""

    name: str
    glyph: str
    short: str
    style: str  # CSS class in HTML
    colour: str  # rich style in the terminal

    @property
    def rank(self) -> float:
        """0 is worst; an unknown verdict comes after the bad ones."""
        return LEVELS.index(self.name) if self.name in LEVELS else _UNKNOWN


_UNKNOWN = LEVELS.index("exceeds_bound") + 0.5
_SHORT = by_language("vocabulary", prefix="verdict:")
MEANINGS = {
    kind: by_language("vocabulary", prefix=f"{kind}:")
    for kind in ("meaning", "flag", "status", "property")
}
"""What each verdict means, each flag, status and property, by kind and language."""
for _lang, _all in MEANINGS["meaning"].items():
    MEANINGS["flag"][_lang] = Texts(_lang, {"unusual": _all["unusual"], **MEANINGS["flag"][_lang]})

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
    name: Verdict(name, marks[0], _SHORT["en"][name], *marks[1:]) for name, marks in _MARKS.items()
}
UNUSUAL = _KNOWN["unusual"]
LEVEL_WORDS = tuple(_KNOWN[name] for name in LEVELS)
"""All of them, worst first."""

WIDE = frozenset(["float32", "float64"])  # what people train and check in; shown first


def verdict(name: str) -> Verdict:
    """The verdict called `name`; an unknown one ranks just below `exceeds_bound`."""
    return _KNOWN.get(name) or Verdict(name, "?", name[:16], "vq", "bold")


def short_of(verdict: Verdict, lang: str) -> str:
    """The verdict in a word or two."""
    return _SHORT[lang].get(verdict.name, verdict.short)


def meaning_of(kind: str, name: str, lang: str = "en") -> str:
    """What a verdict ("meaning"), flag, status or property means; of an unknown one, its name."""
    return MEANINGS[kind][lang].get(name, name.replace("_", " "))


def rank_of_status(name: str) -> int:
    """Errors first, `unsupported` (a fact, not a fault) last."""
    return FAULTS.index(name) if name in FAULTS else -1


def rank_of_dtype(name: str) -> tuple[int, str]:
    """float16, bfloat16, float32, float64, then others by name."""
    return (DTYPES.index(name) if name in DTYPES else len(DTYPES), name)


def rank_of_direction(name: str) -> tuple[int, str]:
    """forward, backward, then others by name."""
    return (DIRECTIONS.index(name) if name in DIRECTIONS else len(DIRECTIONS), name)
