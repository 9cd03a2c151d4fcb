"""Examines a schedule's values: ULP errors, and the two properties that its user relies on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import as_float_array
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.metrology.ulp_errors import ulp_error
from refkernels.schedule_ref.oracle import checked, cosine_decay


@dataclass(frozen=True)
class Examination:
    """The examination of one schedule, over all its steps.

    below, above   steps whose rate is less than min_lr, more than max_lr, rounded to the format
    increases      steps whose rate is higher than that of the step before
    lowest, last   the smallest rate and that of the last step given
    max_ulp        largest |lr - exact| in ulp where the exact rate is not 0, and its step
    max_error      largest |lr - exact| as a share of max_lr - min_lr
    """

    steps: int
    below: int
    above: int
    negative: int
    increases: int
    lowest: float
    last: float
    max_ulp: float | None
    worst_step: int | None
    max_error: float

    @property
    def holds(self) -> bool:
        """Whether min_lr <= lr <= max_lr, and the rate never rises."""
        return not (self.below or self.above or self.increases)

    def to_dict(self) -> dict[str, Any]:
        """Strict JSON."""
        return {**self.__dict__, "holds": self.holds}


@with_default_fenv
def examine(
    lr: npt.NDArray[Any], step: npt.ArrayLike, *, min_lr: float, max_lr: float, decay_steps: int
) -> Examination:
    """The examination of rates (float32 or float64, one a step, finite) against the exact decay.

    The exact decay lies within [min_lr, max_lr] and falls; rounding to nearest keeps an order, so
    every correctly rounded schedule passes. Raises ValueError where shapes differ, where lr is
    empty or where it is not finite.
    """
    steps, min_lr, max_lr, decay_steps = checked(step, min_lr, max_lr, decay_steps)
    steps = steps.reshape(-1)
    rates = as_float_array(lr, "lr").reshape(-1)
    if rates.shape != steps.shape or not rates.size:
        raise ValueError(f"lr has {rates.size} elements and step {steps.size}: one rate a step.")
    if not np.isfinite(rates).all():
        raise ValueError("lr has a NaN or an infinity: only finite rates can be examined.")
    kind = np.dtype(formats.of(rates).storage).type
    exact = cosine_decay(steps, min_lr=min_lr, max_lr=max_lr, decay_steps=decay_steps)
    errors = np.abs(ulp_error(rates, exact).value)
    errors = np.where(np.asarray(exact) == 0.0, -1.0, errors)
    worst = int(np.argmax(errors))
    span = (max_lr - min_lr) or 1.0
    order = np.argsort(steps, kind="stable")
    return Examination(
        steps=rates.size,
        below=int(np.count_nonzero(rates < kind(min_lr))),
        above=int(np.count_nonzero(rates > kind(max_lr))),
        negative=int(np.count_nonzero(rates < 0)),
        increases=int(np.count_nonzero(np.diff(rates[order]) > 0)),
        lowest=float(rates.min()),
        last=float(rates[order][-1]),
        max_ulp=float(errors[worst]) if errors[worst] >= 0 else None,
        worst_step=int(steps[worst]) if errors[worst] >= 0 else None,
        max_error=float(np.max(np.abs(rates.astype(np.float64) - np.asarray(exact)))) / span,
    )
