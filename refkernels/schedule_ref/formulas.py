"""The cosine decay as frameworks write it, in the working precision, with a chosen cosine.

    x = fl(pi fl(t / T)),   lr = fl(min_lr + fl(delta fl(1 + cos x))),   delta = (max_lr - min_lr)/2

`cosine` and `sine` are the kernels under test: NumPy's, a framework's, or a device's recorded
values. min_lr, max_lr and decay_steps are those of `cosine_decay`. An operator may meet its own
specification while the schedule built on it is wrong, because 1 + cos cancels at the end and
multiplies the operator's relative error by |cos| / (1 + cos), without limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import as_float_array
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.mode import with_default_fenv
from refkernels.arithmetic.scalars import as_real
from refkernels.schedule_ref.oracle import checked

Array = npt.NDArray[Any]
Kernel = Callable[[Array], Array]


@with_default_fenv
def formula(
    step: npt.ArrayLike, *, format: Format | str = "float32", cosine: Kernel = np.cos, **decay: Any
) -> Array:
    """min_lr + delta (1 + cos(pi t / T)), every operation rounded to float32 or float64; steps of
    any shape. `formula_bound` bounds its error. Raises as `cosine_decay` does, TypeError for a
    `cosine` that is not such a function, and ValueError for another format."""
    return _computed(step, format, cosine, **decay)


@with_default_fenv
def clipped(
    step: npt.ArrayLike, *, format: Format | str = "float32", cosine: Kernel = np.cos, **decay: Any
) -> Array:
    """min_lr + delta max(1 + cos(pi t / T), 0): the rate cannot fall below min_lr, but is min_lr
    wherever the cosine's error exceeds 1 + cos. Raises as `formula` does."""
    return _computed(step, format, cosine, least=0.0, **decay)


@with_default_fenv
def through_sine(
    step: npt.ArrayLike, *, format: Format | str = "float32", sine: Kernel = np.sin, **decay: Any
) -> Array:
    """min_lr + delta (1 + sin(pi (t / T + 1/2))): another operator with the same cancellation.
    Raises as `formula` does."""
    return _computed(step, format, sine, turned=0.5, **decay)


@with_default_fenv
def formula_bound(
    step: npt.ArrayLike, *, format: Format | str = "float32", cosine_error: float, **decay: Any
) -> npt.NDArray[np.float64]:
    """A bound on |formula - lr|, where the cosine's absolute error is at most `cosine_error` and
    nothing underflows.

    With a = pi t / T: fl(t / T), fl(pi) and their product move a by at most 3.01 u a, the cosine by
    3.01 u a (|sin a| + 3.01 u a). Call all of this plus cosine_error e. 1 + cos, delta (exact in
    binary64, rounded twice at most), the product and the sum add at most u, 2 u, u and u of their
    results, and 1.01 covers second order:
        |error| <= delta e (1 + 5 u) + 1.01 u (4 delta (1 + cos a) + |min_lr| + lr)
    The first term does not fall with lr: at the end it is the only one. Raises as `formula`, and
    TypeError or ValueError for a `cosine_error` that is no number of at least 0.
    """
    target = _computed_in(format)
    steps, min_lr, max_lr, decay_steps = checked(step, **decay)
    part = np.minimum(steps, decay_steps) / decay_steps
    angle, u, delta = np.pi * part, target.u, 0.5 * (max_lr - min_lr)
    cosine_error = as_real(cosine_error, "cosine_error")
    if not 0.0 <= cosine_error < np.inf:
        raise ValueError(f"cosine_error is {cosine_error}: it must be a number of at least 0.")
    moved = 3.01 * u * angle
    e = moved * (np.sin(angle) + moved + 2.0**-50) + cosine_error
    left = 2.0 * np.sin(0.5 * np.pi * (1.0 - part)) ** 2
    lr = min_lr + delta * left
    result: npt.NDArray[np.float64] = delta * e * (1 + 5 * u) + 1.01 * u * (
        4 * delta * left + abs(min_lr) + np.abs(lr)
    )
    return result


def _computed(
    step: npt.ArrayLike, format: Format | str, kernel: Kernel, *, min_lr: float, max_lr: float,
    decay_steps: int, turned: float = 0.0, least: float = -np.inf,
) -> Array:  # fmt: skip
    """min_lr + delta max(1 + kernel(pi (t / T + turned)), least), each operation rounded."""
    kind = np.dtype(_computed_in(format).storage).type
    steps, min_lr, max_lr, decay_steps = checked(step, min_lr, max_lr, decay_steps)
    part = np.minimum(steps, decay_steps).astype(kind) / kind(decay_steps)
    angle = kind(np.pi) * (part + kind(turned))
    value = as_float_array(kernel(angle), "the answer").reshape(np.shape(angle))
    result: Array = kind(min_lr) + kind(0.5 * (max_lr - min_lr)) * np.maximum(
        kind(1) + value, kind(least)
    )
    return result


def _computed_in(format: Format | str) -> Format:
    target = formats.get(format)
    if target.name not in ("float32", "float64"):
        raise ValueError(f"format is {target.name}: schedules are computed in float32 or float64.")
    return target
