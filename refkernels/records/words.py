"""The words of records, in their order, for all code that writes, judges or shows records.

`reporting.words.vocabulary` says what each word means to a reader.
"""

from typing import Literal

SCHEMA = 1  # of everything that is written: records, case files, --json output

Direction = Literal["forward", "backward"]
DIRECTIONS: tuple[Direction, ...] = ("forward", "backward")
DTYPES = ("float16", "bfloat16", "float32", "float64")

VERDICTS = (  # worst first
    "special_value_mismatch",
    "invariant_violated",
    "exceeds_bound",
    "range_limited",
    "ill_conditioned",
    "uncertified",
    "rounding",
    "correctly_rounded",
)
SOUND = VERDICTS[-2:]
"""Verdicts of an output whose errors are shown to be rounding."""
INSIDE = ("ill_conditioned", *SOUND)
"""Verdicts of an output in which no element exceeds its bound or breaks a rule."""
LEVELS = (*VERDICTS[:4], "unusual", *VERDICTS[4:])
"""How bad an output is, worst first: the verdicts, with the flag `unusual` among them."""
FLAGS = (
    "unusual",
    "avoidable",
    "nonzero_at_zero",
    "sign_changes",
    "flushed_subnormals",
    "signed_zero_mismatches",
    "overflows",
    "undecided",
    "uncertified",
    *("derived", "estimated", "statistical"),  # said of the exact values and bounds of a program
)
FAULTS = (  # every status but "ok", faults first; `unsupported` is a fact
    "error",
    "killed",
    "oom",
    "timeout",
    "wrong_shape",
    "import_error",
    "not_installed",
    "unsupported",
)
PROPERTIES = ("run_to_run", "position", "batch", "threads")  # of invariance
Confidence = Literal["proven", "matched", "consistent"]
CONFIDENCES: tuple[Confidence, ...] = ("proven", "matched", "consistent")
SURE = CONFIDENCES[:2]
OR = " or "  # between the texts of a detail, of which the data cannot tell one
