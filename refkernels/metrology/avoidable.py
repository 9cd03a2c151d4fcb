"""Avoidable errors: inside the bound of the op's named forms, but far beyond that of one of them.

An element's error is avoidable if it is certainly more than 8 times a named form's bound there, and
more than 8 ulp. A form counts only if a kernel of its kind could take it: where some forms of a
backward pass start from what the forward pass saved, a kernel may be given no more, and the error
must exceed the bounds of both kinds.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.formats import Format
from refkernels.metrology.summary import Summary
from refkernels.metrology.ulp_errors import ulp
from refkernels.records.codec import figure

Doubles = npt.NDArray[np.float64]
FACTOR = 8.0
"""An avoidable error exceeds this many ulp, and this many times a form's bound."""


class Avoidable(NamedTuple):
    """How many elements have avoidable errors. At the one that exceeds its bound most: the form
    that starts from the inputs and has the least bound, and the error over that bound."""

    elements: int
    form: str
    ratio: float

    @property
    def record(self) -> dict[str, Any]:
        """The form and the ratio in strict JSON."""
        return {"form": self.form, "ratio": figure(self.ratio)}


def needs_asking(summary: Summary) -> bool:
    """Whether any error is large enough."""
    return bool(summary.max > FACTOR or summary.counts["nonzero_at_zero"])


def avoidable(
    got: npt.NDArray[Any],
    reference: Enclosure,
    format: Format,
    attainable: Sequence[Mapping[str, Doubles]],
) -> Avoidable | None:
    """The avoidable errors of an output, None if there are none. `attainable`: bounds by form, in
    groups of which an error must exceed one each."""
    if not attainable:
        return None
    errors, exact = certain_errors(got, reference), np.asarray(reference)
    least = np.zeros(got.shape)
    for group in attainable:
        least = np.maximum(least, np.minimum.reduce([_spread(b, got) for b in group.values()]))
    with np.errstate(all="ignore"):
        large = np.isfinite(errors) & np.isfinite(exact) & (reference.scale == 0)
        large &= errors > FACTOR * ulp(np.where(large, exact, 1.0), format)
        where = large & (errors > FACTOR * least)
        if not where.any():
            return None
        ratios = np.where(where, errors / least, -1.0)
    place = int(np.argmax(ratios))
    bounds = {form: _spread(bound, got).flat[place] for form, bound in attainable[0].items()}
    form = min(bounds, key=lambda name: float(bounds[name]))
    with np.errstate(divide="ignore", over="ignore"):
        ratio = float(errors.flat[place] / bounds[form])
    return Avoidable(int(np.count_nonzero(where)), form, ratio)


def certain_errors(got: npt.NDArray[Any], reference: Enclosure) -> Doubles:
    """By how much each element is certainly wrong at least; negative where it may be right."""
    factor = np.ldexp(1.0, np.clip(reference.scale, -1100, 1023).astype(np.int32))
    with np.errstate(all="ignore"):
        error = np.abs((to_float64(got) - reference.hi * factor) - reference.lo * factor)
        certain: Doubles = error - reference.radius * factor
    return certain


def _spread(bound: Doubles, got: npt.NDArray[Any]) -> Doubles:
    return np.broadcast_to(np.nan_to_num(bound, nan=np.inf), got.shape)
