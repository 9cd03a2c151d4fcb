"""Where a proven bound says nothing: what readings of the program itself miss the truth by.

A worst-case bound grows with the depth of a program, and errors do not. Where it exceeds an eighth
of the RMS of an output's exact values, every element is limited by

    the bound, times 4 times the largest |error| / bound among READINGS and elements

so that the bound gives the proportions and the readings the size; where it is infinite, by 4 times
the largest error. That is a statistic, no proof, and `StatisticalWarning` says so. 4 is the factor
above which an error is called unusual (docs/math.md): right kernels are below 2.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.formats import BINARY64
from refkernels.contexts.bound import Bound
from refkernels.contexts.working import Working
from refkernels.ops import readings
from refkernels.ops.canonical import Canonical
from refkernels.ops.formula import Whole

Doubles = npt.NDArray[np.float64]
READINGS: tuple[dict[str, Any], ...] = (
    {"order": "sequential"},
    {"order": "reversed"},
    {"order": "pairwise"},
    {"order": "sequential", "fma": True},
    *({"order": "random", "seed": seed, "fma": bool(seed % 2)} for seed in range(4)),
)
FACTOR, SHARE = 4.0, 1 / 8


class StatisticalWarning(UserWarning):
    """The verdict on a program compares errors with a spread, since its bound proves nothing."""

    flag = "statistical"


@dataclass(frozen=True)
class Traced(Whole):
    """The formula of a program. `title`: its name and direction, for the warning."""

    title: str = ""

    def limited(
        self, bounds: Mapping[str, tuple[Any, ...]], xp: Bound, question: Canonical
    ) -> dict[str, tuple[Any, ...]]:
        """The bounds and sizes of outputs, the vague bounds replaced by what readings allow."""
        exact = self._read(Working(BINARY64), question, tuple(bounds))
        sizes = {name: (_rms(bounds[name][0]), _rms(exact[name])) for name in bounds}
        vague = tuple(name for name, (bound, size) in sizes.items() if not bound <= SHARE * size)
        if not vague:
            return dict(bounds)
        largest = dict.fromkeys(vague, 0.0)
        for options in READINGS:
            working = Working(xp.working.format, xp.storage.format, **options)
            for name, values in self._read(working, question, vague).items():
                error = np.abs(values - exact[name])
                ratio = error / bounds[name][0] if np.isfinite(sizes[name][0]) else error
                largest[name] = max(largest[name], float(np.nanmax(ratio, initial=0.0)))
        warnings.warn(
            f"{self.title}: the bound of {', '.join(vague)} is more than an eighth of the values' "
            f"RMS and proves nothing: errors are compared with {len(READINGS)} readings' errors, "
            "a statistic.",
            StatisticalWarning,
            stacklevel=2,
        )
        return {
            **bounds,
            **{n: (_limit(bounds[n][0], FACTOR * largest[n]), bounds[n][1]) for n in vague},
        }

    def _read(self, xp: Working, question: Canonical, names: tuple[str, ...]) -> dict[str, Doubles]:
        with np.errstate(all="ignore"):
            parts = readings.read(self, readings.working(xp), question, names)
        return {name: values.astype(np.float64) for name, (values,) in parts.items()}


def _limit(bound: Doubles, largest: float) -> Doubles:
    limit = bound * largest if np.isfinite(bound).all() else np.full(bound.shape, largest)
    return np.fmin(limit, bound)


def _rms(values: Doubles) -> float:
    with np.errstate(all="ignore"):
        return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0
