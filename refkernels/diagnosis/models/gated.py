"""swiglu where the gate's exponential is infinite: in float32, a / (1 + e^-a) is 0 for a <= -88.8,
and -inf / inf at a = -inf."""

from __future__ import annotations

import numpy as np

from refkernels.arithmetic.arrays import to_float64
from refkernels.diagnosis import narrow, overflow
from refkernels.diagnosis.hypothesis import Claim
from refkernels.diagnosis.models.intermediates import LOG2_E
from refkernels.diagnosis.problem import Array, Doubles, Problem


def specials(problem: Problem, output: str, wide: Doubles, wrong: Array) -> Claim | None:
    """The exponential of the gate, or another intermediate of a form, that overflows."""
    a = to_float64(problem.inputs["a"])
    special = ~np.isfinite(wide)
    visible = np.asarray(special | (wide == 0.0) | ~np.isfinite(a))
    sizes = {"exp(-a)": -a * LOG2_E}
    explained = wrong & special if (wrong & special).any() else wrong & (wide == 0.0)
    claim = overflow.first(problem, output, wrong, wrong, np.asarray(explained), sizes, visible)
    return claim or narrow.of_formula(problem, output, wide, wrong)
