"""The words of the report: verdicts, flags, statuses and properties, each in plain language.

Whatever a record says that is not listed here (a verdict of a third party, a new flag) is shown
under its own name and ranked where it will be noticed.
"""

from __future__ import annotations

from dataclasses import dataclass

from refkernels.records.words import DIRECTIONS, DTYPES, LEVELS


@dataclass(frozen=True)
class Verdict:
    """One verdict, or `unusual`: a glyph so that colour never speaks alone, and its words."""

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
_VERDICTS = (
    Verdict(
        "special_value_mismatch", "≠", "wrong special", "v-special", "bold magenta",
        "NaN, infinity or a number where the exact answer calls for another of the three.",
    ),
    Verdict(
        "invariant_violated", "⊘", "impossible", "v-invariant", "bold red",
        "A value that no rounding explains and mathematics forbids, such as |cos x| > 1 "
        "or a negative variance.",
    ),
    Verdict(
        "exceeds_bound", "✗", "beyond bound", "v-exceeds", "bold yellow",
        "The error is larger than any named form of the op can make in this precision on these "
        "inputs, or than the library limit: a lower precision, an unstable formula or a bug.",
    ),
    Verdict(
        "rounding", "≈", "rounding", "v-rounding", "blue",
        "Every element lies inside the bound of the op's named forms, sums in any order, or inside "
        "the library limit, however many ulp that is.",
    ),
    Verdict(
        "correctly_rounded", "✓", "exact", "v-correct", "cyan",
        "Every bit equals the exact answer rounded once: no algorithm in this format does better.",
    ),
)  # fmt: skip
UNUSUAL = Verdict(
    "unusual", "△", "unusual", "v-unusual", "yellow",
    "Inside the bound, but the error is more than 4 times that of the plain sequential algorithm "
    "on the same data. No verdict; worth a look.",
)  # fmt: skip
_KNOWN = {verdict.name: verdict for verdict in (*_VERDICTS, UNUSUAL)}
VERDICTS = tuple(_KNOWN[name] for name in LEVELS)
"""All of them, worst first."""

FLAGS = {
    "unusual": UNUSUAL.meaning,
    "nonzero_at_zero": "The exact answer is 0 and the framework returned something else; such "
    "elements are left out of the ulp figures and judged by error / bound.",
    "sign_changes": "Some results have the opposite sign of the exact answer.",
    "flushed_subnormals": "Some tiny (subnormal) results were replaced by 0.",
    "signed_zero_mismatches": "Some zeros have the wrong sign.",
    "overflows": "Some results are infinite where the exact answer rounds to a finite number.",
    "undecided": "Some elements could not be decided as correctly rounded or not.",
}
STATUSES = {
    "error": "the op raised an exception",
    "killed": "the framework's process died",
    "oom": "out of memory",
    "timeout": "no answer within the time limit",
    "wrong_shape": "the output has the wrong shape",
    "import_error": "the framework could not be imported",
    "not_installed": "the framework is not installed",
    "unsupported": "the framework does not offer this op in this format",
}
PROPERTIES = {
    "run_to_run": "Same inputs twice, same bits",
    "position": "Same bits wherever the element stands in the array",
    "batch": "Same bits whatever the batch around it",
    "threads": "Same bits with 1 and 2 threads",
}
WIDE = frozenset(["float32", "float64"])  # what people train and check in comes first


def verdict(name: str) -> Verdict:
    """The verdict called `name`; an unknown one ranks just below `exceeds_bound`."""
    known = _KNOWN.get(name)
    if known is not None:
        return known
    return Verdict(
        name, "?", name[:16], "v-unknown", "bold",
        f"A verdict that this version of the report does not know: {name}.",
    )  # fmt: skip


def meaning_of_flag(name: str) -> str:
    """What the flag says, or its own name in words."""
    return FLAGS.get(name, name.replace("_", " ") + ".")


def meaning_of_status(name: str) -> str:
    """What the status says, or its own name in words."""
    return STATUSES.get(name, name.replace("_", " "))


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
