"""Where a proven bound says nothing: what readings of the program itself miss the truth by.

A worst-case bound grows with the depth of a program, and errors do not. Where its RMS exceeds an
eighth of that of an output's finite values, every element is limited by

    the bound, times 4 times the largest |error| / bound among READINGS and elements

so that the bound gives the proportions and the readings the size; where it is infinite, by 4 times
the largest error. That is a statistic, no proof, and `StatisticalWarning` says so, with the calls
that widened the bound most. Above 4 an error is called unusual (docs/read-a-report.md): right
kernels are below 2. Where a kernel may choose another place than the exact one, its error is a step
that readings need not show: there the bound stays. What a reading leaves the range for keeps its
bound too, and elements that have nothing to do with each other: their RMS says nothing.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.formats import BINARY64
from refkernels.contexts import doubles
from refkernels.contexts.ball import Ball, BallValue
from refkernels.contexts.bound import Bound
from refkernels.contexts.bound_value import BoundValue, parts
from refkernels.contexts.double_double import DoubleDouble, columns
from refkernels.contexts.value import Mask, Value
from refkernels.contexts.working import RoundedArithmetic, data
from refkernels.ops import readings
from refkernels.ops.canonical import Canonical
from refkernels.ops.formula import Whole
from refkernels.programs.program import Step

Doubles = npt.NDArray[np.float64]
FACTOR, SHARE = 4.0, 1 / 8


class _OtherWays(RoundedArithmetic):
    """Which takes the second of two ways, and whose functions are off by an ulp, as libraries'."""

    def either(self, a: Value, b: Value) -> Value:
        return b

    def primitive(self, name: str, a: Value) -> Any:
        value = super().primitive(name, a)
        return value if name == "sqrt" else value * self.number(1 + 2 * self.format.u)


READINGS: tuple[dict[str, Any], ...] = (
    {"order": "sequential"},
    {"order": "reversed"},
    {"order": "pairwise"},
    {"order": "sequential", "fma": True},
    *({"order": "random", "seed": seed, "fma": bool(seed % 2)} for seed in range(4)),
)


class _Plain(doubles.Doubles):
    """float64 whose casts round nothing."""

    def narrow(self, a: Value, format: str) -> Any:
        return a


class _Middle(Ball):
    """Middles without radii; what is undefined stays so."""

    def value(self, mid: Any, radius: Any) -> BallValue:
        return super().value(mid, np.where(np.isinf(radius), np.inf, 0.0))


class _Middles(DoubleDouble):
    """Double-doubles without radii, of which a comparison that is undecided is of no numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.ball = _Middle()

    def where(self, mask: Any, a: Any, b: Any) -> Any:
        chosen = super().where(mask, a, b)
        if not isinstance(mask, Mask) or mask.decided.all():
            return chosen
        return chosen + self.array(np.where(np.broadcast_to(mask.decided, chosen.shape), 0, np.nan))


MIDDLES = readings.Reading(_Middles(), columns)
PLAIN = readings.Reading(_Plain(), lambda value: (data(value),))


class StatisticalWarning(UserWarning):
    """The verdict on a program compares errors with a spread, since its bound proves nothing.
    `widened`: the outputs, with the calls that widened their bounds most."""

    flag = "statistical"

    def __init__(self, title: str, widened: Sequence[str]) -> None:
        self.widened = widened
        super().__init__(
            f"{title}: the bound of {', '.join(widened)} is more than an eighth of the values' RMS "
            "and proves nothing: errors are compared with those of readings, a statistic."
        )


class Watched(Bound):
    """A bound that finds what widens it, as a share of the values' RMS; of kernels whose places are
    the exact ones. `paths`: by step, along its widest operands, the logarithms of what the
    operators add."""

    def __init__(self, like: Bound) -> None:
        vars(self).update(vars(like))
        self.shares, self.paths = {"": self.working.format.u}, dict[str, dict[str, float]]()

    def before(self, a: Value, b: Value) -> Mask:
        return self.ball.less(parts(a).exact, parts(b).exact)

    def watch(self, step: Step, result: Any) -> None:
        results = result if isinstance(result, tuple) else (result,)
        wide = [_share(item) for item in results if isinstance(item, BoundValue)]
        if wide:
            names = [name for name in step.needs if name in self.shares]
            widest = max(["", *names], key=self.shares.__getitem__)
            self.shares[step.name] = min(max(*wide, self.shares[""]), 1e300)
            path, called = self.paths.get(widest, {}), step.operator.split(".")[-2:][0].strip("_")
            wider = math.log(self.shares[step.name] / self.shares[widest])
            self.paths[step.name] = {**path, called: path.get(called, 0.0) + wider}


def _share(value: BoundValue) -> float:
    known = np.isfinite(value.size)
    return _rms(value.error[known]) / max(_rms(value.size[known]), 1e-300) if known.any() else 1e300


@dataclass(frozen=True)
class Traced(Whole):
    """The formula of a program. `title`: its name and direction, for the warning; `steps`: by
    output, the step that gives it, of gradients empty; without outputs of whole numbers, whose
    bounds stay; None where elements have nothing to do with each other."""

    title: str = ""
    steps: Mapping[str, str] | None = field(default=None, compare=False)

    def limited(
        self, bounds: Mapping[str, tuple[Any, ...]], xp: Bound, question: Canonical
    ) -> dict[str, tuple[Any, ...]]:
        """The bounds and sizes of outputs, the vague bounds replaced by what readings allow."""
        if self.steps is None:
            return dict(bounds)
        floats = tuple(name for name in bounds if not self.steps or name in self.steps)
        exact = self._read(PLAIN, question, floats)
        if xp.storage.format == BINARY64:
            sharper = self._read(MIDDLES, question, floats)  # which know no NaN
            exact = {n: np.where(np.isfinite(y), sharper[n], y) for n, y in exact.items()}
        known = {name: np.isfinite(y) for name, y in exact.items()}
        sizes = {n: (_rms(bounds[n][0][k]), _rms(exact[n][k])) for n, k in known.items()}
        vague = tuple(name for name, (bound, size) in sizes.items() if not bound <= SHARE * size)
        if not vague:
            return dict(bounds)
        errors = {name: np.zeros(exact[name].shape) for name in vague}
        for options in READINGS:  # the last two: other ways, with an FMA and without
            way = _OtherWays if options in READINGS[-2:] else RoundedArithmetic
            working = way(xp.working.format, xp.storage.format, **options)
            for name, values in self._read(readings.working(working), question, vague).items():
                known[name] &= np.isfinite(values)
                with np.errstate(all="ignore"):
                    error = np.abs(values - exact[name]) + 2.0**-53 * np.abs(exact[name])
                errors[name] = np.fmax(errors[name], error)
        widened, settled = self._widened(xp, question, vague)
        warnings.warn(StatisticalWarning(self.title, widened), stacklevel=2)
        for name in vague:  # the others' bound allows for another place
            known[name] &= bounds[name][0] <= settled[name]
        limited = {n: (_limit(bounds[n][0], errors[n], known[n]), bounds[n][1]) for n in vague}
        return {**bounds, **limited}

    def _widened(
        self, xp: Bound, question: Canonical, names: tuple[str, ...]
    ) -> tuple[list[str], dict[str, Doubles]]:
        """The outputs, each with the operator that widened its bound most, gradients without; and
        their bounds for kernels that choose the exact places."""
        watched, steps = Watched(xp), self.steps or {}
        settled = self._read(readings.bound(watched), question, names)
        paths = {name: watched.paths.get(steps.get(name, ""), {}) for name in names}
        most = {n: max(path, key=path.__getitem__, default="") for n, path in paths.items()}
        named = [f"{name} ({called})" if called else name for name, called in most.items()]
        return named, settled

    def _read(self, by: readings.Reading, question: Canonical, names: Any) -> dict[str, Doubles]:
        with np.errstate(all="ignore"):
            parts = readings.read(self, by, question, names)
        return {name: values.astype(np.float64) for name, (values, *_) in parts.items()}


def _limit(bound: Doubles, errors: Doubles, known: Any) -> Doubles:
    with np.errstate(all="ignore"):
        proportions = bound if np.isfinite(bound[known]).all() else np.ones(bound.shape)
        largest = np.nanmax((errors / proportions)[known], initial=0.0)
        return np.where(known, np.fmin(proportions * (FACTOR * largest), bound), bound)


def _rms(values: Doubles) -> float:
    with np.errstate(all="ignore"):
        return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0
