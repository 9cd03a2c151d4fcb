"""The answers of right kernels for inputs anywhere in their intervals.

`contexts.Bound` reads the op's forms with the inputs' intervals as balls: the exact z at every
point of the box lies in mid ± rho, and what a kernel computes there within r of it. If no float of
a printed interval lies in mid ± (rho + r), no inputs in their intervals and no named form give it.

`prepare` moves elements: a midpoint is recognised by its value afterwards, and gets its radius
back. What it computes otherwise, and masks or indices that differ at the ends, are refused. A
function that is no formula is evaluated by Arb; of two bounds, the larger counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import flint
import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import Format
from refkernels.arithmetic.rounding import Rounding
from refkernels.contexts.arb import Arb
from refkernels.contexts.bound import Bound, outward
from refkernels.contexts.bound_value import BoundValue, parts
from refkernels.contexts.objects import data, objects
from refkernels.op import Direction, Op
from refkernels.ops import readings
from refkernels.ops.canonical import Canonical
from refkernels.ops.formula import Formula, several
from refkernels.ops.formulas import Formulas
from refkernels.printed.digits import Intervals

Doubles = npt.NDArray[np.float64]
Box = Mapping[str, Intervals]
_PRECISION = 160
_UP = 1.0 + 2.0**-40


@dataclass(frozen=True)
class Reach:
    """One output: the truth over the box lies in mid ± radius, and a right kernel's answer within
    `error` of the truth. They are infinite where nothing is known."""

    mid: Doubles
    radius: Doubles
    error: Doubles

    @property
    def low(self) -> Doubles:
        """A lower bound on every right kernel's answer."""
        with np.errstate(invalid="ignore"):
            return np.nextafter(self.mid - (self.radius + self.error) * _UP, -np.inf)

    @property
    def high(self) -> Doubles:
        """An upper bound on every right kernel's answer."""
        with np.errstate(invalid="ignore"):
            return np.nextafter(self.mid + (self.radius + self.error) * _UP, np.inf)

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Where an answer can be judged."""
        return np.isfinite(self.radius + self.error)


@dataclass(frozen=True)
class PrintedQuestion:
    """A question whose inputs are known as intervals, with all its params."""

    op: Op
    direction: Direction
    box: Box
    params: Mapping[str, Any]

    @property
    def middles(self) -> dict[str, npt.NDArray[Any]]:
        """The inputs as they are printed."""
        return {name: interval.middle for name, interval in self.box.items()}


def reach(asked: PrintedQuestion, format: Format) -> dict[str, Reach]:
    """The outputs of right kernels in that format, by name.

    Raises ValueError, one sentence, for an op that cannot be read over intervals; the op's own
    TypeError or ValueError for inputs that do not fit it.
    """
    op, formulas = asked.op, asked.op.definition
    if formulas is None and op.real_function is not None:
        return _of_function(op, asked.direction, asked.box, format)
    if formulas is None:
        raise ValueError(f"{op.name} is not a formula: --pasted reads only ops that are.")
    way = formulas.of(asked.direction)
    forms = dict.fromkeys((way.truth, *way.forms.values()))
    if op.formulas is not None:
        return _merged([of_formula(formulas, form, asked, format) for form in forms])
    return _with_own_bound(formulas, list(forms), asked, format)


def _with_own_bound(
    formulas: Formulas, forms: list[Formula], asked: PrintedQuestion, format: Format
) -> dict[str, Reach]:
    """For an op that has its own bound beside its formulas: the larger of two errors over the box.
    One is the error of the forms that the op's bound covers at the midpoints; the other is the op's
    bound, increased by the factor by which the forms' error grows from the midpoints to the box."""
    points = {
        name: replace(interval, low=interval.mid, high=interval.mid)
        if interval.format
        else interval
        for name, interval in asked.box.items()
    }
    middles = {name: point.mid if point.format else point.middle for name, point in points.items()}
    own_bound = asked.op.bound(asked.direction, middles, asked.params, format)
    at = replace(asked, box=points)
    at_points = [of_formula(formulas, form, at, format) for form in forms]
    over_box = [of_formula(formulas, form, asked, format) for form in forms]
    result = {}
    for name, merged in _merged(over_box).items():
        error = np.asarray(own_bound[name], np.float64)
        for point, wide in zip(at_points, over_box, strict=True):
            inner, outer = point[name].error, wide[name].error
            if np.all(inner <= own_bound[name] + 2.0 * format.min_subnormal):
                with np.errstate(all="ignore"):
                    grown = np.where(inner > 0.0, outer / inner, 1.0)
                    error = np.maximum(error, np.maximum(outer, own_bound[name] * grown))
        result[name] = Reach(merged.mid, merged.radius, error)
    return result


def of_formula(
    formulas: Formulas, formula: Formula, asked: PrintedQuestion, format: Format
) -> dict[str, Reach]:
    """The outputs of kernels that compute this formula."""
    question = _question(formulas, asked)
    names = formulas.names(asked.direction, question)
    xp = _BoundOverBox(asked.box, format, formulas)
    reading = readings.Reading(xp, xp.reach)
    with np.errstate(all="ignore"):
        outputs = readings.read(formula, reading, question, names)
    tiny = format.min_subnormal
    result = {}
    for name, columns in outputs.items():
        mid, radius, error = (question.restore(name, column) for column in columns)
        result[name] = Reach(mid, radius, error + tiny)
    return result


def of_model(
    formulas: Formulas,
    formula: Formula,
    asked: PrintedQuestion,
    format: Format,
    right: Mapping[str, Reach],
) -> dict[str, Reach]:
    """The answers of a kernel that rounds as this formula does at the midpoints: as far from the
    formula's answer there as right kernels are from the truth."""
    model = formulas.computed(asked.direction, formula, asked.middles, asked.params, format)
    shared = {name: array for name, array in model.items() if name in right}
    return {name: replace(right[name], mid=to_float64(array)) for name, array in shared.items()}


class _BoundOverBox(Bound):
    """Bound with balls as inputs, each recognised by its midpoint."""

    def __init__(self, box: Box, format: Format, formulas: Formulas) -> None:
        work = formats.working_format(format)
        super().__init__(work, format, scalars=formulas.scalars)  # type: ignore[arg-type]
        self.op = formulas.name
        keys = [interval.mid.reshape(-1) for interval in box.values()]
        radii = [interval.radius.reshape(-1) for interval in box.values()]
        mids, radii_at_mids = np.concatenate([*keys, [0.0]]), np.concatenate([*radii, [0.0]])
        self.keys, places = np.unique(mids, return_inverse=True)
        self.radii = np.zeros(self.keys.shape)
        np.maximum.at(self.radii, places.reshape(-1), radii_at_mids)
        self.wider = any(
            interval.format is not None and not self.working.format.holds(interval.format)
            for interval in box.values()
        )

    def array(self, values: npt.NDArray[Any]) -> BoundValue:
        """The balls of the inputs' elements; arrays of integers are exact."""
        doubles = to_float64(np.asarray(values))
        if np.asarray(values).dtype.kind in "iu":
            return BoundValue(self, self.ball.array(doubles), 0.0)
        positions = np.minimum(np.searchsorted(self.keys, doubles), len(self.keys) - 1)
        listed = self.keys[positions] == doubles
        if np.any(~listed & np.isfinite(doubles) & (np.abs(doubles) != 1.0)):
            raise ValueError(
                f"{self.op} computes with its inputs before its formula begins: it cannot be read "
                "over intervals, so give files with --input and --output."
            )
        exact = self.ball.array(doubles)
        radius = np.where(listed, self.radii[positions], exact.radius)
        ball = self.ball.value(exact.mid, np.where(np.isfinite(doubles), radius, np.inf))
        error = self.working.lost(np.abs(ball.mid) + ball.radius) if self.wider else 0.0
        return BoundValue(self, ball, error)

    def reach(self, value: Any) -> tuple[Any, ...]:
        """(mid, radius, error) of a result."""
        exact = parts(value).exact
        return exact.mid, exact.radius, parts(self.store(value)).error


def _question(formulas: Formulas, asked: PrintedQuestion) -> Canonical:
    """The midpoints' question. Raises ValueError if masks or indices depend on the point."""

    def question_at(end: str) -> Canonical:
        arrays = {
            name: getattr(interval, end) if interval.format else interval.middle
            for name, interval in asked.box.items()
        }
        return formulas.question(asked.direction, arrays, asked.params)

    middle = question_at("mid")
    discrete = {
        name
        for name, array in middle.arrays.items()
        if array is not None and array.dtype.kind in "iub" and name not in asked.box
    }
    if discrete:
        for end in ("low", "high"):
            ends = question_at(end).arrays
            if not all(np.array_equal(middle.arrays[name], ends[name]) for name in discrete):  # type: ignore[arg-type]
                raise ValueError(
                    f"{formulas.name} takes different branches within the intervals that the "
                    "digits leave open: print more digits, or give files with --input and --output."
                )
    return middle


def _merged(reaches: list[dict[str, Reach]]) -> dict[str, Reach]:
    """The sharpest enclosure of the truth, which all forms enclose, and the largest error."""
    first, *others = reaches
    merged = {}
    for name, reach_of_first in first.items():
        mid, radius, error = reach_of_first.mid, reach_of_first.radius, reach_of_first.error
        for other in (reached[name] for reached in others):
            error = np.maximum(error, other.error)
            sharper = other.radius < radius
            mid, radius = np.where(sharper, other.mid, mid), np.where(sharper, other.radius, radius)
        merged[name] = Reach(mid, radius, error)
    return merged


def _of_function(op: Op, direction: Direction, box: Box, format: Format) -> dict[str, Reach]:
    """The reach of a function of one number, element by element."""
    assert op.real_function is not None
    shape, truth = box["x"].mid.shape, op.real_function.formulas.of(direction).truth
    if any(intervals.mid.shape != shape for intervals in box.values()):
        raise ValueError(
            f"{op.cotangent} has shape {box[op.cotangent].mid.shape}, and x has {shape}."
        )
    with Arb(_PRECISION) as xp:
        balls = {name: xp.value(_balls(box[name])) for name in op.takes(direction)}
        mid, radius = np.zeros(shape), np.full(shape, np.inf)
        for i, value in np.ndenumerate(data(*several(truth(xp, **balls)))):
            if value.is_finite() and abs(value) < 1e300:
                mid[i] = middle = float(value.mid())
                radius[i] = float((value - flint.arb(middle)).abs_upper()) * _UP
    error = _error_of_function(op, direction, box, format, np.abs(mid) + radius)
    return {op.names(direction)[0]: Reach(mid, radius, error)}


def _balls(intervals: Intervals) -> Any:
    """Arb's balls of the intervals; of an infinite one, the ball that holds every number."""
    pairs = zip(intervals.mid.flat, intervals.radius.flat, strict=True)
    balls = [flint.arb(mid, rad) if np.isfinite(mid) else flint.arb("nan") for mid, rad in pairs]
    return objects(balls, intervals.mid.shape)


def _error_of_function(
    op: Op, direction: Direction, box: Box, format: Format, size: Doubles
) -> Doubles:
    function = op.real_function
    assert function is not None
    rounding = Rounding(format)
    ulp = rounding.unit * size + rounding.half
    forms = function.forms if direction == "forward" else function.slope_forms
    if not forms:
        limit = function.limit if function.limit is not None else 4.0
        return outward((2.0 * limit + 1.0) * ulp)
    xp = _BoundOverBox(box, format, _NamedOp(op.name))  # type: ignore[arg-type]
    error = np.zeros(size.shape)
    try:
        for form in forms:
            names = op.takes(direction)
            with np.errstate(all="ignore"):
                value = form.formula(xp, *(xp.array(box[name].mid) for name in names))
                error = np.maximum(error, parts(xp.store(value)).error)
    except (AttributeError, NotImplementedError, ValueError):
        raise ValueError(
            f"The {direction} pass of {op.name} cannot be read over intervals: give files with "
            "--input and --output."
        ) from None
    return outward(error + ulp)


@dataclass(frozen=True)
class _NamedOp:
    name: str
    scalars: str = "working"
