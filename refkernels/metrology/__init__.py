"""How far an answer is from the truth: ULP errors, special values, summaries and verdicts.

This package knows no framework and no kernel. The definitions are in `ulp_errors`,
`special_values` and `verdict`. Names are loaded on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from refkernels.records.words import VERDICTS

if TYPE_CHECKING:
    from refkernels.metrology.judgement import agreement, digest, judge
    from refkernels.metrology.summary import Summary, summarise
    from refkernels.metrology.ulp_errors import NO_DISTANCE, UlpError, ulp, ulp_distance, ulp_error
    from refkernels.metrology.verdict import UNUSUAL, error_over_plain

_HOMES = {
    "judgement": ("agreement", "digest", "judge"),
    "summary": ("Summary", "summarise"),
    "ulp_errors": ("NO_DISTANCE", "UlpError", "ulp", "ulp_distance", "ulp_error"),
    "verdict": ("UNUSUAL", "error_over_plain"),
}

__all__ = [
    "NO_DISTANCE",
    "UNUSUAL",
    "VERDICTS",
    "Summary",
    "UlpError",
    "agreement",
    "digest",
    "error_over_plain",
    "judge",
    "summarise",
    "ulp",
    "ulp_distance",
    "ulp_error",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
